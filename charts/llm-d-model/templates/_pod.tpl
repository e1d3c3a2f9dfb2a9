{{/* Fields common to the containers of a process. Takes a process. */}}
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
  {{- include "model-library.probe" .probes.startup | nindent 2 }}
readinessProbe:
  {{- include "model-library.probe" .probes.readiness | nindent 2 }}
livenessProbe:
  {{- include "model-library.probe" .probes.liveness | nindent 2 }}
# In this time new requests stop. Envoy cuts its streams at SIGTERM, so its streams must also end in this time.
lifecycle:
  preStop:
    sleep:
      seconds: {{ .preStopSeconds }}
{{ include "llm-d-model.resources" . }}
{{- end }}

{{/* The program on a further node of a worker. Takes a process. */}}
{{- define "llm-d-model.follower" -}}
image: {{ .image | quote }}
command: {{ toJson .command }}
args: {{ toJson .followerArguments }}
{{ include "llm-d-model.resources" . }}
{{- end }}

{{/* The resources of a container. Takes a process. */}}
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
