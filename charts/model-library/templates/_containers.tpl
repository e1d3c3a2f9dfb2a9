{{/* Fields common to the containers of a process. Takes a process. */}}
{{- define "model-library.mainContainer" -}}
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
{{ include "model-library.resources" . }}
{{- end }}

{{/* The program on a further node of a worker. Takes a process. */}}
{{- define "model-library.follower" -}}
image: {{ .image | quote }}
command: {{ toJson .command }}
args: {{ toJson .followerArguments }}
{{ include "model-library.resources" . }}
{{- end }}

{{/* The resources of a container. Takes a process. */}}
{{- define "model-library.resources" -}}
resources:
  requests:
    cpu: {{ .resources.cpu | quote }}
    memory: {{ printf "%dMi" (int .resources.memoryMib) | quote }}
    ephemeral-storage: {{ printf "%dMi" (int .resources.ephemeralStorageMib) | quote }}
  limits:
    memory: {{ printf "%dMi" (int .resources.memoryMib) | quote }}
    {{- with .resources.accelerators }}
    {{- if .resourceName }}
    {{ .resourceName }}: {{ .count | quote }}
    {{- end }}
    {{- end }}
    {{- with .resources.efaInterfaces }}
    vpc.amazonaws.com/efa: {{ . | quote }}
    {{- end }}
{{- end }}

{{/* A sidecar of a process. Takes a dict of `sidecar` and further `arguments`. */}}
{{- define "model-library.sidecar" -}}
- name: {{ .sidecar.name }}
  image: {{ .sidecar.image | quote }}
  # Starts before the program that needs it and ends after it.
  restartPolicy: Always
  args: {{ toJson (concat .sidecar.arguments .arguments) }}
  {{- if not .sidecar.address }}
  # One that listens at the loopback address is reached, and probed, by way of the program in front of it.
  ports:
    {{- range .sidecar.ports }}
    - name: {{ .name }}
      containerPort: {{ .number }}
      protocol: TCP
    {{- end }}
  {{- $health := "" }}
  {{- range .sidecar.ports }}{{ if eq .name (default "" $.sidecar.healthPort) }}{{ $health = .number }}{{ end }}{{ end }}
  {{- if $health }}
  readinessProbe:
    grpc: {port: {{ $health }}, service: readiness}
    periodSeconds: 5
    timeoutSeconds: 4
    failureThreshold: 3
  livenessProbe:
    grpc: {port: {{ $health }}, service: liveness}
    initialDelaySeconds: 30
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 3
  {{- else if not .sidecar.certificates }}
  {{- /* The probes of the program pass through the one that admits known callers. */}}
  readinessProbe:
    tcpSocket:
      port: {{ (first .sidecar.ports).name }}
    periodSeconds: 5
    timeoutSeconds: 4
    failureThreshold: 3
  {{- end }}
  {{- end }}
  resources:
    requests:
      cpu: {{ .sidecar.cpu | quote }}
      memory: {{ printf "%dMi" (int .sidecar.memoryMib) | quote }}
    limits:
      memory: {{ printf "%dMi" (int .sidecar.memoryMib) | quote }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  {{- if .sidecar.certificates }}
  volumeMounts:
    - name: certificate
      mountPath: {{ .certificate.folder }}
      readOnly: true
  {{- end }}
{{- end }}
