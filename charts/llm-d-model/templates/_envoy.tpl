{{/* The proxy behind the filter and in front of the picker. Filters and clusters are Envoy's v3 API (https://www.envoyproxy.io/docs); the picker's
protocol is that of the Gateway API Inference Extension: it answers with the header x-gateway-destination-endpoint. */}}
{{- define "llm-d-model.envoy" -}}
{{- $router := include "llm-d-model.router" . | fromJson }}
{{- $proxy := include "llm-d-model.proxy" . | fromJson }}
{{- $longest := printf "%ds" (int $router.terminationGraceSeconds) -}}
static_resources:
  listeners:
    - name: models
      address:
        socket_address: {address: {{ $proxy.address }}, port_value: {{ (first $proxy.ports).number }}}
      per_connection_buffer_limit_bytes: 32768
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: models
                normalize_path: true
                merge_slashes: true
                path_with_escaped_slashes_action: UNESCAPE_AND_REDIRECT
                common_http_protocol_options:
                  headers_with_underscores_action: REJECT_REQUEST
                  # The filter has a connection for each request, and closes it.
                  idle_timeout: 3700s
                stream_idle_timeout: {{ $longest }}
                route_config:
                  virtual_hosts:
                    - name: models
                      domains: ["*"]
                      routes:
                        - match: {prefix: /v1/}
                          # An answer takes as long as it takes; silence ends it.
                          route: {cluster: picked, timeout: 0s}
                        # vLLM serves what is for its operator on the same port: measurements, tokens as input, pauses.
                        - match: {prefix: /}
                          direct_response: {status: 404}
                          typed_per_filter_config:
                            envoy.filters.http.ext_proc:
                              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute
                              disabled: true
                http_filters:
                  - name: envoy.filters.http.health_check
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck
                      pass_through_mode: false
                      headers:
                        - name: ":path"
                          string_match: {exact: {{ $router.probes.readiness.path }}}
                  # Who may name an address is the picker alone: a caller's would be followed anywhere in the network.
                  - name: envoy.filters.http.header_mutation
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
                      mutations:
                        request_mutations:
                          {{- range list "x-gateway-destination-endpoint" "x-gateway-destination-endpoint-subset" "x-prefiller-host-port" "x-encoder-hosts-ports" "x-data-parallel-host-port" "x-kv-cache-source-host-port" }}
                          - remove: {{ . }}
                          {{- end }}
                  - name: envoy.filters.http.ext_proc
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
                      # Without the picker nobody knows a worker: refused at once, rather than sent nowhere.
                      failure_mode_allow: false
                      grpc_service:
                        envoy_grpc: {cluster_name: picker, authority: localhost}
                        timeout: 10s
                      # Waiting in the picker's queue is part of the time to the first token.
                      message_timeout: {{ $longest }}
                      processing_mode:
                        request_header_mode: SEND
                        response_header_mode: SEND
                        request_body_mode: FULL_DUPLEX_STREAMED
                        response_body_mode: FULL_DUPLEX_STREAMED
                        request_trailer_mode: SEND
                        response_trailer_mode: SEND
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
                      suppress_envoy_headers: true
  clusters:
    - name: picked
      type: ORIGINAL_DST
      lb_policy: CLUSTER_PROVIDED
      connect_timeout: 5s
      original_dst_lb_config:
        use_http_header: true
        http_header_name: x-gateway-destination-endpoint
      circuit_breakers: &unlimited
        thresholds:
          - {max_connections: 40000, max_pending_requests: 40000, max_requests: 40000}
    - name: picker
      type: STATIC
      connect_timeout: 5s
      circuit_breakers: *unlimited
      # The picker makes a certificate of its own at each start; both are in one pod.
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
          common_tls_context: {alpn_protocols: [h2]}
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {http2_protocol_options: {}}
      load_assignment:
        cluster_name: picker
        endpoints:
          - lb_endpoints:
              - endpoint:
                  address:
                    socket_address: {address: 127.0.0.1, port_value: {{ include "llm-d-model.port" (dict "process" $router "name" "ext-proc") }}}
{{- end }}
