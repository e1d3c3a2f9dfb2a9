{{/* Settings of the router, in the schema of llm-d/llm-d-router, apix/config/v1alpha1. Their READMEs name the plugins. */}}
{{- define "llm-d-model.picker" -}}
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
  - type: metrics-data-source
  - type: core-metrics-extractor
  {{- if eq .Values.picker.prefixScorer "precise" }}
  - type: endpoint-notification-source
  # Prompts in the model's own tokens: the producer that needs no server only estimates them.
  - type: token-producer
    parameters:
      modelName: {{ .Values.model | quote }}
      vllm:
        url: http://{{ .Release.Name }}-render.{{ .Release.Namespace }}.svc:{{ include "llm-d-model.workerPort" . }}
  - type: precise-prefix-cache-producer
    parameters:
      tokenProcessorConfig:
        blockSizeTokens: {{ .Values.picker.blockSize }}
      # What was sent somewhere counts until the worker's own events say so.
      speculativeIndexing: true
      kvEventsConfig:
        topicFilter: kv@
        discoverPods: true
        podDiscoveryConfig:
          socketPort: {{ include "llm-d-model.port" (dict "process" (last .Values.processes) "name" "kv-events") }}
  {{- end }}
  {{- if or (eq .Values.picker.prefixScorer "approximate") (include "llm-d-model.disaggregated" .) }}
  # The decider below reads this one, whatever the scorer reads.
  - type: approx-prefix-cache-producer
  {{- end }}
  - type: prefix-cache-scorer
    {{- if eq .Values.picker.prefixScorer "precise" }}
    parameters:
      prefixMatchInfoProducerName: precise-prefix-cache-producer
    {{- end }}
  - type: queue-scorer
  - type: max-score-picker
  {{- if include "llm-d-model.disaggregated" . }}
  - type: prefill-filter
  - type: decode-filter
  # Fewer tokens that the decode worker does not hold are computed there: moving them takes longer.
  - type: prefix-based-pd-decider
    parameters:
      nonCachedTokens: 512
  - type: disagg-profile-handler
    parameters:
      deciders:
        prefill: prefix-based-pd-decider
  {{- else }}
  - type: kv-cache-utilization-scorer
  - type: single-profile-handler
  {{- end }}
dataLayer:
  sources:
    - pluginRef: metrics-data-source
      extractors:
        - pluginRef: core-metrics-extractor
    {{- if eq .Values.picker.prefixScorer "precise" }}
    - pluginRef: endpoint-notification-source
      extractors:
        - pluginRef: precise-prefix-cache-producer
    {{- end }}
schedulingProfiles:
  {{- if include "llm-d-model.disaggregated" . }}
  {{- range list "prefill" "decode" }}
  - name: {{ . }}
    plugins:
      - pluginRef: {{ . }}-filter
      - pluginRef: prefix-cache-scorer
        weight: 2
      - pluginRef: queue-scorer
        weight: 1
      - pluginRef: max-score-picker
  {{- end }}
  {{- else }}
  - name: default
    plugins:
      - pluginRef: prefix-cache-scorer
        weight: 3
      - pluginRef: queue-scorer
        weight: 2
      - pluginRef: kv-cache-utilization-scorer
        weight: 2
      - pluginRef: max-score-picker
  {{- end }}
{{- end }}
