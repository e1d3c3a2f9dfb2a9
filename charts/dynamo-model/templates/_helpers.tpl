{{/* Labels that select the pods of one process; called with a dict of `root` and `process`. */}}
{{- define "dynamo-model.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .process.name }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "dynamo-model.labels" -}}
{{ include "dynamo-model.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Name of the SecretProviderClass and of the Secret that it fills. */}}
{{- define "dynamo-model.secrets" -}}
{{ .Release.Name }}-secrets
{{- end }}

{{/* A health check; called with one of the process's probes. */}}
{{- define "dynamo-model.probe" -}}
httpGet:
  path: {{ .path | quote }}
  port: {{ .port }}
periodSeconds: {{ .periodSeconds }}
timeoutSeconds: {{ .timeoutSeconds }}
failureThreshold: {{ .failureThreshold }}
{{- end }}

{{/* Where a pod may run; called with a process. */}}
{{- define "dynamo-model.placement" -}}
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
{{- define "dynamo-model.spread" -}}
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
        {{- include "dynamo-model.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{/* Environment variables; called with a dict of `root` and `process`. */}}
{{- define "dynamo-model.environment" -}}
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
      name: {{ include "dynamo-model.secrets" $.root }}
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
