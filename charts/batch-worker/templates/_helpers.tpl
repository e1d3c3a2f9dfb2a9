{{/* Labels of every object. */}}
{{- define "batch-worker.labels" -}}
{{ include "batch-worker.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{/* Labels that select the pods, and never change. */}}
{{- define "batch-worker.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
