{{/* How KEDA scales an elastic process. Takes a dict of `root`, `process`, `name` of the object and its `target`. */}}
{{- define "model-library.scaledObject" -}}
{{- $scaling := .process.scaling -}}
{{- $least := int $scaling.least -}}
{{- $ceiling := int (default $scaling.most $scaling.ceiling) -}}
{{- /* While the capacity shift acts, it sets the floor within the range of the blueprint, and a deployment keeps it:
without it, KEDA would end workers that the forecast needs. */}}
{{- if $scaling.shifted -}}
{{- $live := lookup "keda.sh/v1alpha1" "ScaledObject" .root.Release.Namespace .name -}}
{{- $least = dig "spec" "minReplicaCount" $least $live | int | max $least | min (int $scaling.most) -}}
{{- /* On a pool that models share by the hour, it also sets the ceiling: above it, KEDA would take what others need. */}}
{{- if $scaling.ceiling -}}
{{- $ceiling = dig "spec" "maxReplicaCount" $ceiling $live | int | max $least | min (int $scaling.most) -}}
{{- end -}}
{{- end -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ .name }}
  labels:
    {{- include "model-library.labels" . | nindent 4 }}
  annotations:
    {{- range $scaling.triggers }}
    inference-blueprints/{{ .name }}: {{ .why | quote }}
    {{- end }}
spec:
  scaleTargetRef: {{ toJson .target }}
  minReplicaCount: {{ $least }}
  maxReplicaCount: {{ $ceiling }}
  pollingInterval: {{ $scaling.pollingSeconds }}
  # While a load cannot be read, the number of workers stays, and is at least the highest floor.
  fallback:
    failureThreshold: {{ $scaling.fallbackAfterFailures }}
    replicas: {{ $scaling.fallbackReplicas }}
    behavior: currentReplicasIfHigher
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp:
          stabilizationWindowSeconds: {{ $scaling.upStabilizationSeconds }}
        # A worker that goes first finishes its streams, so few go at a time. A share of one worker counts as one.
        scaleDown:
          stabilizationWindowSeconds: {{ $scaling.downStabilizationSeconds }}
          policies:
            - type: Percent
              value: {{ $scaling.downPercent }}
              periodSeconds: {{ $scaling.downPeriodSeconds }}
  triggers:
    {{- range $scaling.triggers }}
    - type: prometheus
      name: {{ .name }}
      metricType: {{ .metricType }}
      metadata:
        serverAddress: {{ $scaling.prometheusAddress | quote }}
        query: {{ .query | quote }}
        threshold: {{ .target | toString | quote }}
        # No answer is a failure and not a load of 0, for which workers would go.
        ignoreNullValues: "false"
    {{- end }}
    {{- range $index, $floor := $scaling.floors }}
    - type: cron
      name: floor-{{ $index }}
      metadata:
        timezone: {{ $floor.timeZone | quote }}
        start: {{ $floor.start | quote }}
        end: {{ $floor.end | quote }}
        desiredReplicas: {{ $floor.replicas | quote }}
    {{- end }}
{{- end }}
