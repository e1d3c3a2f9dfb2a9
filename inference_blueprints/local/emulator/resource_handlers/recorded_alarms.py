"""Records alarms on metric math and on PromQL, which the emulator refuses. They never go into alarm.

The emulator handles alarms on a single metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_blueprints.local.emulator.resource_handlers.registry import Made, Properties, ResourceRequest
from inference_blueprints.local.emulator.resource_handlers.stub_table import Stub
from inference_blueprints.local.emulator.resource_handlers.stubs import StubHandler

RESOURCE_TYPE = "AWS::CloudWatch::Alarm"
#: What else an alarm needs, by the property that says what it watches. The CloudFormation reference of the
#: type names `EvaluationInterval` as required with `EvaluationCriteria`, and the others with `Metrics`.
_REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Metrics": ("ComparisonOperator", "EvaluationPeriods", "Threshold"),
        "EvaluationCriteria": ("EvaluationInterval",),
    }
)
_STUBS: Mapping[str, StubHandler] = MappingProxyType(
    {
        watched: StubHandler(
            RESOURCE_TYPE,
            Stub(
                "an alarm is recorded; nothing is computed",
                "alarm-{unique}",
                {"Arn": "arn:aws:cloudwatch:{region}:{account}:alarm:{id}"},
                required,
            ),
        )
        for watched, required in _REQUIRED.items()
    }
)


def register_recorded_alarms() -> None:
    """Register alarms on metric math and on PromQL in the emulator's CloudFormation."""
    own = dict(_RESOURCE_HANDLERS[RESOURCE_TYPE])

    def create(logical_id: str, properties: Properties, stack: str) -> Made:
        if stub := _stub(properties):
            return stub.create(ResourceRequest(stack, logical_id, properties))
        made: Made = own["create"](logical_id, properties, stack)
        return made

    def update(name: str, before: Properties, properties: Properties, stack: str, logical_id: str) -> Made:
        if stub := _stub(properties):
            return stub.update(ResourceRequest(stack, logical_id, properties))
        made: Made = own["update"](name, before, properties, stack, logical_id)
        return made

    _RESOURCE_HANDLERS[RESOURCE_TYPE] = {**own, "create": create, "update": update}


def _stub(properties: Properties) -> StubHandler | None:
    return next((stub for watched, stub in _STUBS.items() if watched in properties), None)
