"""Where processes send traces, and the variables that make them do so."""

from __future__ import annotations

from typing import Final

from inference_contracts import ecs_names

#: Port of OTLP over gRPC (OpenTelemetry Protocol Specification, "OTLP/gRPC Default Port").
_PORT: Final = 4317
#: Service of the CloudWatch agent, which the operator of the add-on creates in the add-on's namespace.
TRACES_ENDPOINT_ON_EKS: Final = f"http://cloudwatch-agent.amazon-cloudwatch.svc:{_PORT}"
#: Dynamo exports traces if it is true, whatever the format of its logs
#: (https://docs.nvidia.com/dynamo/dev/reference/observability/environment-variables).
EXPORT_SWITCH: Final = "OTEL_EXPORT_ENABLED"


def traces_endpoint_on_ecs(platform: str) -> str:
    """Return the address of the CloudWatch agent of a platform on ECS, which runs in the metrics task."""
    return f"http://{ecs_names.COLLECTOR}.{ecs_names.metrics_domain(platform)}:{_PORT}"
