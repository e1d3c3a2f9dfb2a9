{{/* The number of replicas that Helm asks for: nothing if KEDA scales the process, or the capacity shift lends it to batch,
and sets the number. But if the number was Helm's until now, because it was fixed, Helm repeats the live one until another
is set: of a field that only Helm had and that Helm leaves out, the API server makes 1, and all other workers would end. Takes a dict of `root`, `process`, and
`apiVersion`, `kind` and `name` of the object; `component`: the number is that of a component of a graph. */}}
{{- define "model-library.replicas" -}}
{{- $live := dict -}}
{{- if or .process.scaling .process.lent -}}
{{- $live = lookup .apiVersion .kind .root.Release.Namespace .name -}}
{{- end -}}
{{- if not (or .process.scaling (and .process.lent $live)) -}}
{{ .process.replicas }}
{{- else -}}
{{- $spec := dig "spec" dict $live -}}
{{- range dig "components" list $spec -}}
{{- if eq .name $.process.name -}}{{- $spec = . -}}{{- end -}}
{{- end -}}
{{- $helms := false -}}
{{- range dig "metadata" "managedFields" list $live -}}
{{- $fields := dig "fieldsV1" "f:spec" dict . -}}
{{- if $.component -}}
{{- $fields = dig "f:components" (printf "k:{\"name\":%q}" $.process.name) dict $fields -}}
{{- end -}}
{{- if and (eq .manager "helm") (hasKey $fields "f:replicas") -}}{{- $helms = true -}}{{- end -}}
{{- end -}}
{{- if $helms -}}{{ $spec.replicas }}{{- end -}}
{{- end -}}
{{- end -}}
