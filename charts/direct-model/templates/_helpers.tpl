{{/* Name of a process's objects. Takes a dict of `root` and `process`. */}}
{{- define "direct-model.name" -}}
{{ .root.Release.Name }}-{{ .process.name }}
{{- end }}
