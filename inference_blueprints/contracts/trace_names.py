"""Where pods send traces, and the variables that make them do so."""

from __future__ import annotations

from typing import Final

#: Service of the CloudWatch agent, which the operator of the add-on creates in the add-on's namespace, and
#: the port of OTLP over gRPC (OpenTelemetry Protocol Specification, "OTLP/gRPC Default Port").
TRACES_ENDPOINT: Final = "http://cloudwatch-agent.amazon-cloudwatch.svc:4317"
#: Dynamo exports traces if it is true, whatever the format of its logs
#: (https://docs.nvidia.com/dynamo/dev/reference/observability/environment-variables).
EXPORT_SWITCH: Final = "OTEL_EXPORT_ENABLED"
