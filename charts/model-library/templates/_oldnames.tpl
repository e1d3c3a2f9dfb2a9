{{/* The Service of an entry point whose old host name leads to it, without a caller's certificate. Takes a dict of `root` and
`process`, which has the port `old-names` only then. */}}
{{- define "model-library.oldNames" -}}
{{- range .process.ports }}
{{- if eq .name "old-names" }}
apiVersion: v1
kind: Service
metadata:
  name: {{ $.root.Release.Name }}-old-names
  labels:
    {{- include "model-library.labels" (dict "root" $.root "process" $.process) | nindent 4 }}
spec:
  type: ClusterIP
  selector:
    {{- include "model-library.selector" (dict "root" $.root "process" $.process) | nindent 4 }}
  ports:
    - name: {{ .name }}
      port: {{ .number }}
      targetPort: {{ .number }}
      protocol: TCP
{{- end }}
{{- end }}
{{- end }}
