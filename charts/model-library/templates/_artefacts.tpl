{{/* Containers that load compiled artefacts before a worker, and store them beside it. Takes a dict of `root` and `process`. */}}
{{- define "model-library.artefacts" -}}
{{- with .process.artefacts -}}
{{- range $name, $word := dict "artefacts-load" "load" "artefacts-store" "keep" }}
{{- if eq $word "load" }}
# Ends with the artefacts in the folder, or when this worker is the one that compiles them.
{{- else }}
# Stores what this worker compiled, once its server is healthy.
{{- end }}
- name: {{ $name }}
  image: {{ $.process.image | quote }}
  {{- if eq $word "keep" }}
  restartPolicy: Always
  {{- end }}
  command: [python3, -m, weights.neuron_artefacts, {{ $word }}]
  env:
    - name: PYTHONPATH
      value: /programs
    - name: PYTHONUNBUFFERED
      value: "1"
    {{- include "model-library.variables" (dict "root" $.root "variables" $.process.artefacts.environment) | nindent 4 }}
  resources:
    requests: {cpu: 100m, memory: 256Mi}
    limits: {memory: 512Mi}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: artefacts
      mountPath: {{ $.process.artefacts.folder }}
    - name: artefacts-program
      mountPath: /programs/weights
      readOnly: true
{{- end }}
{{- end }}
{{- end }}
