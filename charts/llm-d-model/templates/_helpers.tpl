{{/* Name of a process's objects. Dynamo's operator names its objects by release and process only. The names
here differ, so that a release can change its stack. Takes a dict of `root` and `process`. */}}
{{- define "llm-d-model.name" -}}
{{ .root.Release.Name }}-{{ if eq .process.role "frontend" }}{{ .process.name }}{{ else }}vllm-{{ .process.name }}{{ end }}
{{- end }}

{{/* Label value of a worker's role, which the router's filters read. */}}
{{- define "llm-d-model.role" -}}
{{ get (dict "worker" "prefill-decode" "prefill" "prefill" "decode" "decode") .role }}
{{- end }}

{{/* Whether prefill and decode have separate workers; empty if not. */}}
{{- define "llm-d-model.disaggregated" -}}
{{- range .Values.processes }}{{ if eq .role "prefill" }}true{{ end }}{{ end }}
{{- end }}

{{/* The process that answers clients. */}}
{{- define "llm-d-model.router" -}}
{{- range .Values.processes }}{{ if eq .role "frontend" }}{{ toJson . }}{{ end }}{{ end }}
{{- end }}

{{/* Number of a port of a process or its sidecars. Takes a dict of `process` and `name`. */}}
{{- define "llm-d-model.port" -}}
{{- $ports := .process.ports }}
{{- range .process.sidecars }}{{ $ports = concat $ports .ports }}{{ end }}
{{- $found := "" }}
{{- range $ports }}{{ if eq .name $.name }}{{ $found = .number }}{{ end }}{{ end }}
{{- required (printf "process %s has no port %s" .process.name .name) $found | int }}
{{- end }}

{{/* The proxy behind the filter. */}}
{{- define "llm-d-model.proxy" -}}
{{- range (include "llm-d-model.router" . | fromJson).sidecars }}{{ if eq .name "envoy" }}{{ toJson . }}{{ end }}{{ end }}
{{- end }}

{{/* The port on which every worker accepts requests. */}}
{{- define "llm-d-model.workerPort" -}}
{{- $numbers := list }}
{{- range .Values.processes }}
{{- if ne .role "frontend" }}
{{- $numbers = append $numbers (include "llm-d-model.port" (dict "process" . "name" "http")) }}
{{- end }}
{{- end }}
{{- if ne (len (uniq $numbers)) 1 }}{{ fail "workers of an InferencePool listen on one port" }}{{ end }}
{{- first $numbers }}
{{- end }}
