{{/* What every container of a plan's process has in common; called with a process. */}}
{{- define "llm-d-model.program" -}}
image: {{ .image | quote }}
command: {{ toJson .command }}
args: {{ toJson .arguments }}
ports:
  {{- range .ports }}
  - name: {{ .name }}
    containerPort: {{ .number }}
    protocol: TCP
  {{- end }}
startupProbe:
  {{- include "llm-d-model.probe" .probes.startup | nindent 2 }}
readinessProbe:
  {{- include "llm-d-model.probe" .probes.readiness | nindent 2 }}
livenessProbe:
  {{- include "llm-d-model.probe" .probes.liveness | nindent 2 }}
# In this time nothing new is sent any more; Envoy, which drops its streams at SIGTERM, ends them in it too.
lifecycle:
  preStop:
    sleep:
      seconds: {{ .preStopSeconds }}
{{ include "llm-d-model.resources" . }}
{{- end }}

{{/* The program on a further node of a worker; called with a process. */}}
{{- define "llm-d-model.follower" -}}
image: {{ .image | quote }}
command: {{ toJson .command }}
args: {{ toJson .followerArguments }}
{{ include "llm-d-model.resources" . }}
{{- end }}

{{/* What a container takes of its node; called with a process. */}}
{{- define "llm-d-model.resources" -}}
resources:
  requests:
    cpu: {{ .resources.cpu | quote }}
    memory: {{ printf "%dMi" (int .resources.memoryMib) | quote }}
    ephemeral-storage: {{ printf "%dMi" (int .resources.ephemeralStorageMib) | quote }}
  limits:
    memory: {{ printf "%dMi" (int .resources.memoryMib) | quote }}
    {{- with .resources.accelerators }}
    {{ .resourceName }}: {{ .count | quote }}
    {{- end }}
    {{- with .resources.efaInterfaces }}
    vpc.amazonaws.com/efa: {{ . | quote }}
    {{- end }}
{{- end }}
