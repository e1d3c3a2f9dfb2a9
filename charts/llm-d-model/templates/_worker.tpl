{{/* The pod of a worker, or of one of its further nodes, which has no API and so no sidecar, port or health check;
called with a dict of `root`, `process` and `follows`. */}}
{{- define "llm-d-model.workerPod" -}}
{{- with .process -}}
metadata:
  labels:
    {{- include "llm-d-model.selector" $ | nindent 4 }}
    {{- if not $.follows }}
    llm-d.ai/inference-pool: {{ $.root.Release.Name }}
    llm-d.ai/role: {{ include "llm-d-model.role" . }}
    {{- end }}
    {{- if .packing }}
    {{ .poolLabel }}: {{ .pool | quote }}
    {{ .packing.acceleratorsLabel }}: {{ .resources.accelerators.count | quote }}
    {{- end }}
spec:
  serviceAccountName: {{ $.root.Values.serviceAccount }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ .terminationGraceSeconds }}
  {{- include "llm-d-model.placement" . | trim | nindent 2 }}
  {{- include "llm-d-model.spread" $ | trim | nindent 2 }}
  securityContext:
    # The user `dynamo` of the runtime images, by number so that kubelet can verify it.
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 0
    fsGroup: 1000
    seccompProfile: {type: RuntimeDefault}
  {{- $sidecars := ternary list .sidecars (or $.follows (not .sidecars)) }}
  {{- if or .awaitsWeights $sidecars }}
  initContainers:
    {{- if .awaitsWeights }}
    # Ends when the model lies in the bucket whole.
    - name: weights
      image: {{ .image | quote }}
      command: [python3, -m, weights.wait]
      env:
        - name: PYTHONPATH
          value: /programs
        {{- include "llm-d-model.environment" $ | nindent 8 }}
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
        {{- include "llm-d-model.environment" $ | nindent 8 }}
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
        {{- if $.root.Values.secrets }}
        - name: secrets
          mountPath: /mnt/secrets
          readOnly: true
        {{- end }}
  volumes:
    # On the node's disk: downloaded weights and compiled kernels, gone with the pod.
    - name: cache
      emptyDir:
        sizeLimit: {{ printf "%dMi" (int .resources.ephemeralStorageMib) | quote }}
    # What the processes of one worker pass to each other; the default is 64 MiB.
    - name: shared-memory
      emptyDir:
        medium: Memory
        sizeLimit: {{ printf "%dMi" (int .resources.sharedMemoryMib) | quote }}
    {{- with .awaitsWeights }}
    - name: weights
      configMap:
        name: {{ . }}
    {{- end }}
    {{- if $.root.Values.secrets }}
    # Mounting is what makes the driver fill the Secret.
    - name: secrets
      csi:
        driver: secrets-store.csi.k8s.io
        readOnly: true
        volumeAttributes:
          secretProviderClass: {{ include "llm-d-model.secrets" $.root }}
    {{- end }}
{{- end }}
{{- end }}
