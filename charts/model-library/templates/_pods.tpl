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

{{/* Scheduler, tolerations and affinity of a pod. Takes a process. */}}
{{- define "model-library.placement" -}}
{{- with .scheduler }}
schedulerName: {{ . }}
{{- end }}
{{- with .priorityClass }}
priorityClassName: {{ . }}
{{- end }}
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
    {{- with .zone }}
    {{- /* Beside its workers, because bytes between zones are billed. A preference: other zones are better than none. */}}
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        preference:
          matchExpressions:
            - key: topology.kubernetes.io/zone
              operator: In
              values: [{{ . | quote }}]
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
{{- else if .process.zone }}
{{- $topologies = list "kubernetes.io/hostname" }}
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
{{- include "model-library.variables" (dict "root" .root "variables" .process.environment) | nindent 0 }}
{{- end }}

{{/* Variables from the plan. Takes a dict of `root` and `variables`. */}}
{{- define "model-library.variables" -}}
{{- range $index, $_ := .variables }}
{{- if $index }}
{{ end }}- name: {{ .name }}
  {{- if hasKey . "value" }}
  value: {{ .value | quote }}
  {{- else if hasKey . "file" }}
  value: {{ printf "/mnt/files/%s" .file | quote }}
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

{{/* Containers that prepare, fill and hold the node's cache. Takes a dict of `root` and `process`. */}}
{{- define "model-library.nodeCache" -}}
{{- with .process.nodeCache -}}
# kubelet creates the folder for root. This makes it writable for the group of the pods, without any capability.
- name: node-folder
  image: {{ $.process.image | quote }}
  command: [chmod, "0770", /node]
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  securityContext:
    runAsNonRoot: false
    runAsUser: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: node
      mountPath: /node
# The first pod of a node fills the copy, others wait. While it runs, no other pod deletes what this pod uses.
- name: node-cache
  image: {{ $.process.image | quote }}
  restartPolicy: Always
  command: [python3, -m, weights.node_cache]
  env:
    - name: PYTHONPATH
      value: /programs
    - name: PYTHONUNBUFFERED
      value: "1"
    - name: HF_HOME
      value: /tmp/huggingface
    {{- include "model-library.variables" (dict "root" $.root "variables" .environment) | nindent 4 }}
  startupProbe:
    exec:
      command: [test, -e, /tmp/ready]
    periodSeconds: 5
    failureThreshold: {{ div (int .fillSeconds) 5 }}
  resources:
    requests:
      cpu: {{ .cpu | quote }}
      memory: {{ printf "%dMi" (int .memoryMib) | quote }}
      ephemeral-storage: 64Mi
    limits:
      memory: {{ printf "%dMi" (int .memoryMib) | quote }}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: node
      mountPath: /node
    - name: node-program
      mountPath: /programs/weights
      readOnly: true
    {{- if and $.root.Values.secrets .weights }}
    - name: secrets
      mountPath: /mnt/secrets
      readOnly: true
    {{- end }}
{{- end }}
{{- end }}

{{/* What the worker sees of the node's cache: its own weights, read-only, and its release's kernels. Takes a process. */}}
{{- define "model-library.nodeCacheMounts" -}}
{{- with .nodeCache -}}
{{- if .weights -}}
- name: node
  mountPath: {{ .weightsPath }}
  subPath: {{ printf "weights/%s" .weights | quote }}
  readOnly: true
{{ end -}}
- name: node
  mountPath: {{ .compiledPath }}
  subPath: {{ printf "compiled/%s" .compiled | quote }}
{{- end }}
{{- end }}

{{/* Volumes of the node's cache. Takes a dict of `root` and `process`. */}}
{{- define "model-library.nodeCacheVolumes" -}}
{{- with .process.nodeCache -}}
# On the node's disk, for all its pods. It stays when the pod ends.
- name: node
  hostPath:
    path: {{ .hostFolder }}
    type: DirectoryOrCreate
- name: node-program
  configMap:
    name: {{ include "model-library.program" $.root }}
{{- end }}
{{- end }}

{{/* Name of the ConfigMap with the program that fills the node's cache. Takes the root context. */}}
{{- define "model-library.program" -}}
{{ .Release.Name }}-node-cache
{{- end }}

{{/* The program that fills the node's cache, if a process uses one. Takes the root context. */}}
{{- define "model-library.programConfigMap" -}}
{{- if .Values.program }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "model-library.program" . }}
  labels:
    app.kubernetes.io/name: {{ .Chart.Name }}
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/managed-by: {{ .Release.Service }}
    helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
data:
  {{- range $name, $text := .Values.program }}
  {{ $name }}: |
    {{- $text | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The process's variables that are paths of files, as JSON: the ConfigMap's name changes with it. Takes a process. */}}
{{- define "model-library.files" -}}
{{- $files := list }}
{{- range .environment }}{{ if hasKey . "file" }}{{ $files = append $files . }}{{ end }}{{ end }}
{{- if $files }}{{ toJson $files }}{{ end }}
{{- end }}

{{/* Name of the ConfigMap of a process's files. Takes a dict of `root` and `process`. */}}
{{- define "model-library.filesName" -}}
{{ .root.Release.Name }}-{{ .process.name }}-{{ include "model-library.files" .process | sha256sum | trunc 8 }}
{{- end }}

{{/* The ConfigMaps of the files of all processes. Takes the root context. */}}
{{- define "model-library.fileConfigMaps" -}}
{{- range $process := .Values.processes }}
{{- with include "model-library.files" $process }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "model-library.filesName" (dict "root" $ "process" $process) }}
  labels:
    {{- include "model-library.labels" (dict "root" $ "process" $process) | nindent 4 }}
# With another content it has another name, so the pods start again and read it.
immutable: true
data:
  {{- range fromJsonArray . }}
  {{ .file }}: {{ .text | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
