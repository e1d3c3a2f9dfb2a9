"""Where processes send traces, and the variables that make them do so."""

from __future__ import annotations

from typing import Final

from inference_contracts import ecs_names

#: Ports of OTLP over gRPC and HTTP (OpenTelemetry Protocol Specification, "OTLP/gRPC Default Port" and
#: "OTLP/HTTP Default Port").
_PORT: Final = 4317
HTTP_PORT: Final = 4318
#: Service of the CloudWatch agent, which the operator of the add-on creates in the add-on's namespace.
TRACES_HOST_ON_EKS: Final = "cloudwatch-agent.amazon-cloudwatch.svc"
TRACES_ENDPOINT_ON_EKS: Final = f"http://{TRACES_HOST_ON_EKS}:{_PORT}"
#: Dynamo exports traces if it is true, whatever the format of its logs
#: (https://docs.nvidia.com/dynamo/dev/reference/observability/environment-variables).
EXPORT_SWITCH: Final = "OTEL_EXPORT_ENABLED"


def traces_host_on_ecs(platform: str) -> str:
    """Return the host name of the CloudWatch agent of a platform on ECS, which runs in the metrics task."""
    return f"{ecs_names.COLLECTOR}.{ecs_names.metrics_domain(platform)}"


def traces_endpoint_on_ecs(platform: str) -> str:
    """Return the address to which processes on ECS send spans over gRPC."""
    return f"http://{traces_host_on_ecs(platform)}:{_PORT}"
