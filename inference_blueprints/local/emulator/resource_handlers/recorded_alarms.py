"""Records alarms on PromQL, which the emulator refuses. They never go into alarm."""

from __future__ import annotations

from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_blueprints.local.emulator.resource_handlers.registry import Made, Properties, ResourceRequest
from inference_blueprints.local.emulator.resource_handlers.stub_table import Stub
from inference_blueprints.local.emulator.resource_handlers.stubs import StubHandler

RESOURCE_TYPE = "AWS::CloudWatch::Alarm"
#: The property that an alarm on PromQL has and no other.
_CRITERIA = "EvaluationCriteria"
_STUB = StubHandler(
    RESOURCE_TYPE,
    Stub(
        "an alarm is recorded; nothing is computed",
        "alarm-{unique}",
        {"Arn": "arn:aws:cloudwatch:{region}:{account}:alarm:{id}"},
        # The CloudFormation reference of the type names it as required with the criteria.
        ("EvaluationInterval",),
    ),
)


def register_recorded_alarms() -> None:
    """Register alarms on PromQL in the emulator's CloudFormation."""
    own = dict(_RESOURCE_HANDLERS[RESOURCE_TYPE])

    def create(logical_id: str, properties: Properties, stack: str) -> Made:
        if _CRITERIA in properties:
            return _STUB.create(ResourceRequest(stack, logical_id, properties))
        made: Made = own["create"](logical_id, properties, stack)
        return made

    def update(name: str, before: Properties, properties: Properties, stack: str, logical_id: str) -> Made:
        if _CRITERIA in properties:
            return _STUB.update(ResourceRequest(stack, logical_id, properties, name))
        made: Made = own["update"](name, before, properties, stack, logical_id)
        return made

    _RESOURCE_HANDLERS[RESOURCE_TYPE] = {**own, "create": create, "update": update}
