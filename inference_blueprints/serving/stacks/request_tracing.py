"""Traces of requests: what a process needs to send its spans.

A frontend decides which requests are traced, and each process behind it follows that decision
(``parentbased_traceidratio`` of the OpenTelemetry Environment Variable Specification). Dynamo's own variable
for the share is ``OTEL_TRACES_SAMPLE_RATIO`` (ai-dynamo 1.6.1); SDKs of Python read the two of the
specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue, Role
from inference_blueprints.spec.types import ArgumentValue
from inference_contracts.trace_names import (
    EXPORT_SWITCH,
    TRACES_ENDPOINT_ON_EKS,
    traces_endpoint_on_ecs,
)

#: Dynamo sends its logs wherever it sends traces, and nothing switches that off. They have no receiver, since
#: Fluent Bit or `awslogs` reads them from the containers, so each attempt would add an error to the logs. An
#: hour between two attempts leaves one per 512 lines (the batch of the OpenTelemetry specification).
#: https://docs.nvidia.com/dynamo/v1.3.0/user-guides/observability-local
#: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#batch-logrecord-processor
_LOG_EXPORT_MILLISECONDS: Final = 3_600_000


def trace_environment(resolved: ResolvedWorkers, role: Role) -> Mapping[str, EnvironmentValue]:
    """Return the variables of a process of Dynamo or vLLM; none without traces.

    resolved: Workers of the deployment.
    role: What the process does.
    """
    traces = _traces(resolved)
    if traces is None:
        return {}
    ratio = f"{traces:g}"
    return {
        EXPORT_SWITCH: "true",
        "OTEL_BLRP_SCHEDULE_DELAY": f"{_LOG_EXPORT_MILLISECONDS}",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": _endpoint(resolved),
        "OTEL_SERVICE_NAME": f"{resolved.release}-{role}",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": ratio,
        "OTEL_TRACES_SAMPLE_RATIO": ratio,
    }


def trace_arguments(resolved: ResolvedWorkers) -> Mapping[str, ArgumentValue]:
    """Return the arguments with which an engine continues the trace of a request; none without traces.

    vLLM sends spans of its own only if it has an endpoint (``vllm/tracing/otel.py`` of 0.31.0).
    """
    if _traces(resolved) is None or resolved.model.engine.chosen != "vllm":
        return {}
    return {"otlp-traces-endpoint": _endpoint(resolved)}


def _endpoint(resolved: ResolvedWorkers) -> str:
    blueprint = resolved.blueprint
    if blueprint.spec.cluster.ecs:
        return traces_endpoint_on_ecs(blueprint.metadata.name)
    return TRACES_ENDPOINT_ON_EKS


def _traces(resolved: ResolvedWorkers) -> float | None:
    """Return the share of requests that are traced; None without traces."""
    observability = resolved.blueprint.spec.observability
    return observability.traces.sample_ratio if observability and observability.traces else None
