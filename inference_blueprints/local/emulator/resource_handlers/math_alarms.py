"""Records alarms on metric math, which the emulator refuses. They never go into alarm.

The emulator handles alarms on a single metric.
"""

from __future__ import annotations

from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_blueprints.local.emulator.resource_handlers.registry import Made, Properties, ResourceRequest
from inference_blueprints.local.emulator.resource_handlers.stub_table import Stub
from inference_blueprints.local.emulator.resource_handlers.stubs import StubHandler

RESOURCE_TYPE = "AWS::CloudWatch::Alarm"
_STUB = Stub(
    "an alarm is recorded; nothing is computed",
    "alarm-{unique}",
    {"Arn": "arn:aws:cloudwatch:{region}:{account}:alarm:{id}"},
    ("ComparisonOperator", "EvaluationPeriods", "Metrics", "Threshold"),
)


def register_math_alarms() -> None:
    """Register alarms on metric math in the emulator's CloudFormation."""
    own = dict(_RESOURCE_HANDLERS[RESOURCE_TYPE])
    stub = StubHandler(RESOURCE_TYPE, _STUB)

    def create(logical_id: str, properties: Properties, stack: str) -> Made:
        if "Metrics" in properties:
            return stub.create(ResourceRequest(stack, logical_id, properties))
        made: Made = own["create"](logical_id, properties, stack)
        return made

    def update(name: str, before: Properties, properties: Properties, stack: str, logical_id: str) -> Made:
        if "Metrics" in properties:
            return stub.update(ResourceRequest(stack, logical_id, properties))
        made: Made = own["update"](name, before, properties, stack, logical_id)
        return made

    _RESOURCE_HANDLERS[RESOURCE_TYPE] = {**own, "create": create, "update": update}
