{{/* Labels that select the pods of a process. Takes a dict of `root` and `process`. */}}
{{- define "model-library.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .process.name }}
{{- end }}

{{/* Labels of the objects of a process. Takes a dict of `root` and `process`. */}}
{{- define "model-library.labels" -}}
{{ include "model-library.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Name of the SecretProviderClass, and of the Secret that it fills. Takes the root context. */}}
{{- define "model-library.secrets" -}}
{{ .Release.Name }}-secrets
{{- end }}

{{/* A health check. Takes one of the process's probes. */}}
{{- define "model-library.probe" -}}
httpGet:
  path: {{ .path | quote }}
  port: {{ .port }}
periodSeconds: {{ .periodSeconds }}
timeoutSeconds: {{ .timeoutSeconds }}
failureThreshold: {{ .failureThreshold }}
{{- end }}

{{/* Tolerations and affinity of a pod. Takes a process. */}}
{{- define "model-library.placement" -}}
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
  {{- /* With the weights of its neighbours, the scheduler prefers the fullest node that has room. */}}
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

{{/* How the pods of a process are spread. Takes a dict of `root` and `process`. */}}
{{- define "model-library.spread" -}}
{{- $topologies := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
{{- $skew := 1 }}
{{- if .process.packing }}
{{- /* A large skew gives zones little weight: they only decide between nodes that are equally full. */}}
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
        {{- include "model-library.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{/* Environment variables of a container. Takes a dict of `root` and `process`. */}}
{{- define "model-library.environment" -}}
# On the mounted disk: huggingface_hub, vLLM and compilers keep their caches below these paths.
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
      name: {{ include "model-library.secrets" $.root }}
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
