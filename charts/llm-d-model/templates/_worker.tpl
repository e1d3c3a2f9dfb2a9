{{/* The pod of a worker, or of one of its further nodes. A further node has no API, so its pod has no sidecar, port or
health check. Takes a dict of `root`, `process` and `follows`. */}}
{{- define "llm-d-model.workerPod" -}}
{{- with .process -}}
metadata:
  labels:
    {{- include "model-library.selector" $ | nindent 4 }}
    {{- if not $.follows }}
    llm-d.ai/inference-pool: {{ $.root.Release.Name }}
    llm-d.ai/role: {{ include "llm-d-model.role" . }}
    {{- end }}
    {{- if not $.follows }}
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
  {{- if or .awaitsWeights .nodeCache $sidecars }}
  initContainers:
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
    {{- range $sidecars }}
    {{- include "llm-d-model.sidecar" (dict "sidecar" . "arguments" list) | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    - name: main
      {{- include (ternary "llm-d-model.follower" "llm-d-model.program" $.follows) . | nindent 6 }}
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
        {{- if .nodeCache }}
        {{- include "model-library.nodeCacheMounts" . | nindent 8 }}
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
