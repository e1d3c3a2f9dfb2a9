"""Where pods send traces, and the variables that make them do so."""

from __future__ import annotations

from typing import Final

#: Service of the CloudWatch agent, which the operator of the add-on creates in the add-on's namespace, and
#: the port of OTLP over gRPC (OpenTelemetry Protocol Specification, "OTLP/gRPC Default Port").
TRACES_ENDPOINT: Final = "http://cloudwatch-agent.amazon-cloudwatch.svc:4317"
#: Dynamo 1.6.1 exports traces if both are true, and logs each line as JSON then
#: (https://docs.nvidia.com/dynamo/dev/user-guides/observability-local/tracing).
EXPORT_SWITCHES: Final = ("DYN_LOGGING_JSONL", "OTEL_EXPORT_ENABLED")
