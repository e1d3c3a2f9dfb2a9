{{/* Labels that select the pods of one process; called with a dict of `root` and `process`. */}}
{{- define "llm-d-model.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .process.name }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "llm-d-model.labels" -}}
{{ include "llm-d-model.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Name of the SecretProviderClass and of the Secret that it fills. */}}
{{- define "llm-d-model.secrets" -}}
{{ .Release.Name }}-secrets
{{- end }}

{{/* A health check; called with one of the process's probes. */}}
{{- define "llm-d-model.probe" -}}
httpGet:
  path: {{ .path | quote }}
  port: {{ .port }}
periodSeconds: {{ .periodSeconds }}
timeoutSeconds: {{ .timeoutSeconds }}
failureThreshold: {{ .failureThreshold }}
{{- end }}

{{/* Where a pod may run; called with a process. */}}
{{- define "llm-d-model.placement" -}}
{{- with .tolerations }}
tolerations:
  {{- range . }}
  - key: {{ .key | quote }}
    operator: Equal
    value: {{ .value | quote }}
    effect: {{ .effect }}
  {{- end }}
{{- end }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - key: kubernetes.io/arch
              operator: In
              values: [{{ .architecture }}]
            - key: {{ .poolLabel | quote }}
              {{- if .pool }}
              operator: In
              values: [{{ .pool | quote }}]
              {{- else }}
              operator: DoesNotExist
              {{- end }}
  {{- $process := . }}
  {{- with .packing }}
  {{- /* Neighbours' weights make the fullest node with room the best one. */}}
  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      {{- range .neighbours }}
      - weight: {{ .weight }}
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{ $process.poolLabel }}: {{ $process.pool | quote }}
              {{ $process.packing.acceleratorsLabel }}: {{ .accelerators | quote }}
      {{- end }}
  {{- end }}
{{- end }}

{{/* How the pods of one process are spread; called with a dict of `root` and `process`. */}}
{{- define "llm-d-model.spread" -}}
{{- $topologies := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
{{- $skew := 1 }}
{{- if .process.packing }}
{{- /* Beside so large a skew a few pods weigh next to nothing: zones decide between nodes that are equally full. */}}
{{- $topologies = list "topology.kubernetes.io/zone" }}
{{- $skew = 1000 }}
{{- end }}
topologySpreadConstraints:
  {{- range $topologies }}
  - maxSkew: {{ $skew }}
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "llm-d-model.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{/* Environment variables; called with a dict of `root` and `process`. */}}
{{- define "llm-d-model.environment" -}}
# Where the mounted disk is: huggingface_hub, vLLM and compilers keep their caches below these.
- name: XDG_CACHE_HOME
  value: /cache
- name: HF_HOME
  value: /cache/huggingface
{{- range .process.environment }}
- name: {{ .name }}
  {{- if hasKey . "value" }}
  value: {{ .value | quote }}
  {{- else if hasKey . "secret" }}
  valueFrom:
    secretKeyRef:
      name: {{ include "llm-d-model.secrets" $.root }}
      key: {{ .secret }}
  {{- else if hasKey . "weightsBucket" }}
  value: {{ $.root.Values.weightsBucket | quote }}
  {{- else if hasKey . "kvCacheBucket" }}
  value: {{ $.root.Values.kvCacheBucket | quote }}
  {{- else }}
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
  {{- end }}
{{- end }}
{{- end }}

{{/* Name of a process's objects. Dynamo's operator gives its own the name of release and process alone, and a release
that comes from it must find the name free. Called with a dict of `root` and `process`. */}}
{{- define "llm-d-model.name" -}}
{{ .root.Release.Name }}-{{ if eq .process.role "frontend" }}{{ .process.name }}{{ else }}vllm-{{ .process.name }}{{ end }}
{{- end }}

{{/* What the router's filters read of a worker's role. */}}
{{- define "llm-d-model.role" -}}
{{ get (dict "worker" "prefill-decode" "prefill" "prefill" "decode" "decode") .role }}
{{- end }}

{{/* Whether prefill and decode are apart; empty where they are not. */}}
{{- define "llm-d-model.disaggregated" -}}
{{- range .Values.processes }}{{ if eq .role "prefill" }}true{{ end }}{{ end }}
{{- end }}

{{/* The process that answers callers. */}}
{{- define "llm-d-model.router" -}}
{{- range .Values.processes }}{{ if eq .role "frontend" }}{{ toJson . }}{{ end }}{{ end }}
{{- end }}

{{/* Number of a port of a process or its sidecars; called with a dict of `process` and `name`. */}}
{{- define "llm-d-model.port" -}}
{{- $ports := .process.ports }}
{{- range .process.sidecars }}{{ $ports = concat $ports .ports }}{{ end }}
{{- $found := "" }}
{{- range $ports }}{{ if eq .name $.name }}{{ $found = .number }}{{ end }}{{ end }}
{{- required (printf "process %s has no port %s" .process.name .name) $found | int }}
{{- end }}

{{/* The port on which every worker takes requests. */}}
{{- define "llm-d-model.workerPort" -}}
{{- $numbers := list }}
{{- range .Values.processes }}
{{- if ne .role "frontend" }}
{{- $numbers = append $numbers (include "llm-d-model.port" (dict "process" . "name" "http")) }}
{{- end }}
{{- end }}
{{- if ne (len (uniq $numbers)) 1 }}{{ fail "workers of an InferencePool listen on one port" }}{{ end }}
{{- first $numbers }}
{{- end }}

{{/* A program beside a process; called with a dict of `sidecar` and `arguments`, more of them. */}}
{{- define "llm-d-model.sidecar" -}}
- name: {{ .sidecar.name }}
  image: {{ .sidecar.image | quote }}
  # Starts before the program that needs it and ends after it.
  restartPolicy: Always
  args: {{ toJson (concat .sidecar.arguments .arguments) }}
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
  {{- else }}
  readinessProbe:
    tcpSocket:
      port: {{ (first .sidecar.ports).name }}
    periodSeconds: 5
    timeoutSeconds: 4
    failureThreshold: 3
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
{{- end }}
