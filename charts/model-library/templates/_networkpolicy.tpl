{{/* Who may connect to the pods of a process: pods of its release, on every port, because the transfer of KV cache and
the processes of one engine choose their own. Also, on the port of the metrics, what measures the platform; and on the
ports of the process everybody, if the load balancer reaches it: its addresses are those of any pod. Kubernetes always
admits the node of the pod, so health checks need no rule (kubernetes.io, "Network Policies"). Takes a dict of `root`,
`process`, `name` and `reached`. */}}
{{- define "model-library.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  labels:
    {{- include "model-library.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "model-library.selector" . | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - from:
        - podSelector:
            matchLabels:
              app.kubernetes.io/instance: {{ .root.Release.Name }}
    {{- $port := index (default dict .process.metricLabels) "inference-blueprints/metrics-port" }}
    {{- if include "model-library.hasCertificate" .process }}
    # The sidecar decides who is admitted, by certificate. Load balancers have addresses of the network, as pods have.
    - ports:
        {{- range .process.ports }}
        - {port: {{ .number }}, protocol: TCP}
        {{- end }}
        {{- range .process.sidecars }}
        {{- if .certificates }}
        {{- range .ports }}
        - {port: {{ .number }}, protocol: TCP}
        {{- end }}
        {{- end }}
        {{- end }}
    {{- end }}
    {{- if and .reached (not (include "model-library.hasCertificate" .process)) }}
    - ports:
        {{- range .process.ports }}
        - {port: {{ .number }}, protocol: TCP}
        {{- end }}
        {{- range .process.sidecars }}
        {{- range .ports }}
        - {port: {{ .number }}, protocol: TCP}
        {{- end }}
        {{- end }}
    {{- else if $port }}
    - from:
        # Prometheus.
        - namespaceSelector:
            matchLabels:
              kubernetes.io/metadata.name: monitoring
      ports:
        - {port: {{ $port | int }}, protocol: TCP}
    {{- end }}
{{- end }}
