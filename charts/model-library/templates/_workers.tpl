{{/* The pod of a worker, or of one of its further nodes. A further node has no API, so its pod has no sidecar, port or
health check. Takes a dict of `root`, `process` and `follows`, and `labels` of the pods with an API. */}}
{{- define "model-library.workerPod" -}}
{{- with .process -}}
metadata:
  labels:
    {{- include "model-library.selector" $ | nindent 4 }}
    {{- if not $.follows }}
    {{- with $.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .metricLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
    {{- if .packing }}
    {{- if or $.follows (not .metricLabels) }}
    {{ .poolLabel }}: {{ .pool | quote }}
    {{- end }}
    {{ .packing.acceleratorsLabel }}: {{ .resources.accelerators.count | quote }}
    {{- end }}
spec:
  serviceAccountName: {{ $.root.Values.serviceAccount }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ .terminationGraceSeconds }}
  {{- include "model-library.placement" . | trim | nindent 2 }}
  {{- include "model-library.spread" $ | trim | nindent 2 }}
  securityContext:
    # The user `dynamo` of the runtime images, by number so that kubelet can verify it.
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 0
    fsGroup: 1000
    seccompProfile: {type: RuntimeDefault}
  {{- $sidecars := ternary list .sidecars (or $.follows (not .sidecars)) }}
  {{- if or .awaitsWeights .nodeCache .artefacts $sidecars }}
  initContainers:
    {{- if .artefacts }}
    {{- include "model-library.artefacts" $ | nindent 4 }}
    {{- end }}
    {{- if .nodeCache }}
    {{- include "model-library.nodeCache" $ | nindent 4 }}
    {{- end }}
    {{- if .awaitsWeights }}
    # Ends when the bucket contains the complete model.
    - name: weights
      image: {{ .image | quote }}
      command: [python3, -m, weights.wait]
      env:
        - name: PYTHONPATH
          value: /programs
        {{- include "model-library.environment" $ | nindent 8 }}
      resources:
        requests: {cpu: 100m, memory: 256Mi}
        limits: {memory: 512Mi}
      securityContext:
        allowPrivilegeEscalation: false
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: weights
          mountPath: /programs/weights
          readOnly: true
    {{- end }}
    {{- if include "model-library.hasCertificate" (dict "sidecars" $sidecars) }}
    {{- include "model-library.certificate" $.root | nindent 4 }}
    {{- end }}
    {{- range $sidecars }}
    {{- include "model-library.sidecar" (dict "sidecar" . "arguments" list "certificate" $.root.Values.certificate) | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    - name: main
      {{- include (ternary "model-library.follower" "model-library.mainContainer" $.follows) . | nindent 6 }}
      env:
        {{- include "model-library.environment" $ | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        capabilities:
          drop: [ALL]
          {{- with .capabilities }}
          add: {{ toJson . }}
          {{- end }}
      volumeMounts:
        - name: cache
          mountPath: /cache
        - name: shared-memory
          mountPath: /dev/shm
        {{- with .artefacts }}
        - name: artefacts
          mountPath: {{ .folder }}
        {{- end }}
        {{- if .nodeCache }}
        {{- include "model-library.nodeCacheMounts" . | nindent 8 }}
        {{- end }}
        {{- if include "model-library.files" . }}
        - name: files
          mountPath: /mnt/files
          readOnly: true
        {{- end }}
        {{- if and $.root.Values.secrets (not (dig "weights" "" (default dict .nodeCache))) }}
        - name: secrets
          mountPath: /mnt/secrets
          readOnly: true
        {{- end }}
  volumes:
    # On the node's disk: downloaded weights and compiled kernels. They are deleted with the pod.
    - name: cache
      emptyDir:
        sizeLimit: {{ printf "%dMi" (int .resources.ephemeralStorageMib) | quote }}
    # Shared memory between the processes of one worker. The default is 64 MiB.
    - name: shared-memory
      emptyDir:
        medium: Memory
        sizeLimit: {{ printf "%dMi" (int .resources.sharedMemoryMib) | quote }}
    {{- if .nodeCache }}
    {{- include "model-library.nodeCacheVolumes" $ | nindent 4 }}
    {{- end }}
    {{- if include "model-library.files" . }}
    - name: files
      configMap:
        name: {{ include "model-library.filesName" (dict "root" $.root "process" .) }}
    {{- end }}
    {{- if .artefacts }}
    # On the node's disk. It is deleted with the pod; S3 keeps what counts.
    - name: artefacts
      emptyDir: {}
    - name: artefacts-program
      configMap:
        name: {{ include "model-library.program" $.root }}
    {{- end }}
    {{- if include "model-library.hasCertificate" (dict "sidecars" $sidecars) }}
    {{- include "model-library.certificateVolume" . | nindent 4 }}
    {{- end }}
    {{- with .awaitsWeights }}
    - name: weights
      configMap:
        name: {{ . }}
    {{- end }}
    {{- if $.root.Values.secrets }}
    # The driver fills the Secret only when the volume is mounted.
    - name: secrets
      csi:
        driver: secrets-store.csi.k8s.io
        readOnly: true
        volumeAttributes:
          secretProviderClass: {{ include "model-library.secrets" $.root }}
    {{- end }}
{{- end }}
{{- end }}

{{/* The Deployment of workers that each fit on one node. Takes a dict of `root`, `process` and `name`, and `labels` of the
pods. */}}
{{- define "model-library.workerDeployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  labels:
    {{- include "model-library.labels" . | nindent 4 }}
spec:
  {{- with include "model-library.replicas" (merge (dict "apiVersion" "apps/v1" "kind" "Deployment") .) }}
  replicas: {{ . }}
  {{- end }}
  # The start may take as long as the startup check allows, plus the time for a new node.
  progressDeadlineSeconds: {{ add 900 (mul .process.probes.startup.periodSeconds .process.probes.startup.failureThreshold) }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: {{ .process.rollout.maxSurge }}
      maxUnavailable: {{ .process.rollout.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "model-library.selector" . | nindent 6 }}
  template:
    {{- include "model-library.workerPod" (set . "follows" false) | nindent 4 }}
{{- end }}

{{/* How many pods of a process a drain may take at once. Takes a dict of `root`, `process` and `name`. */}}
{{- define "model-library.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels:
    {{- include "model-library.labels" . | nindent 4 }}
spec:
  # At least one pod may always be evicted, so that no node drain blocks. Unready pods may always be evicted.
  maxUnavailable: {{ .process.rollout.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "model-library.selector" . | nindent 6 }}
{{- end }}
