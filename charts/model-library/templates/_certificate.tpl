{{/* The container that keeps the certificate of a release, and its folder. It runs before the sidecar that admits known
callers, and after it. Both are for processes with such a sidecar only. */}}

{{/* Whether a process has a sidecar that reads the certificate; empty if not. Takes a process. */}}
{{- define "model-library.hasCertificate" -}}
{{- range .sidecars }}{{ if .certificates }}true{{ end }}{{ end }}
{{- end }}

{{/* The container. Takes the root context. */}}
{{- define "model-library.certificate" -}}
{{- with .Values.certificate -}}
- name: certificate
  image: {{ .image | quote }}
  restartPolicy: Always
  command: {{ toJson .command }}
  env:
    {{- range $name, $value := .environment }}
    - name: {{ $name }}
      value: {{ $value | quote }}
    {{- end }}
  startupProbe:
    exec:
      command: {{ toJson .readyCommand }}
    periodSeconds: 2
    # The build makes certificates in the first minutes of a platform.
    failureThreshold: 450
  resources:
    requests:
      cpu: {{ printf "%dm" (int .millicpu) }}
      memory: {{ printf "%dMi" (int .memoryMib) | quote }}
    limits:
      memory: {{ printf "%dMi" (int .memoryMib) | quote }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: certificate
      mountPath: {{ .folder }}
{{- end }}
{{- end }}

{{/* The folder, in memory: it holds a private key. */}}
{{- define "model-library.certificateVolume" -}}
- name: certificate
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
