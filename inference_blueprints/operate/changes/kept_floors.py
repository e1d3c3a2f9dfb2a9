"""Floors on ECS, the smallest numbers of tasks, that the capacity shift or a schedule has set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange, Resource, Template
from inference_blueprints.operate.changes.template_values import listed, spelled

CHECK = "floors"
_TARGET: Final = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY: Final = "AWS::IAM::Policy"
_REGISTER, _UPDATE = "application-autoscaling:RegisterScalableTarget", "ecs:UpdateService"
_LEAST: Final = "MinCapacity"


def kept_floors(change: PlatformChange) -> Iterator[Finding]:
    """Write the floor that holds now where CloudFormation would write that of the blueprint.

    CloudFormation registers a target with all properties as soon as one of them changes. Until the capacity
    shift has set its floor again, or until the next scheduled action, scaling policies could end tasks down
    to the blueprint's number. If only this number changes and what holds is in the new range, nothing is
    written.
    """
    shifted = {name for template in change.new.values() for name in _shifted_services(template)}
    for stack, logical_id, old, new in change.changed_resources():
        before, after = old.get("Properties", {}), new.get("Properties", {})
        if new["Type"] != _TARGET or before == after or before.get("ResourceId") != after.get("ResourceId"):
            continue
        service = str(after["ResourceId"])
        name = service.rpartition("/")[2]
        if name not in shifted and not after.get("ScheduledActions"):
            continue
        floor = _live_floor(change.account, service)
        if floor is None:
            continue
        kept = min(after["MaxCapacity"], max(after[_LEAST], floor))
        if kept == floor and {**before, _LEAST: after[_LEAST]} == after:
            kept = before[_LEAST]
        if kept != after[_LEAST]:
            message = f"{name} keeps the floor that its schedule or the capacity shift has set"
            yield Held(CHECK, stack, message, partial(_keep, logical_id, kept))


def _shifted_services(template: Template) -> Iterator[str]:
    """Yield the services of which the capacity shift may set the smallest number of tasks."""
    resources: Mapping[str, Resource] = template.get("Resources", {})
    for resource in resources.values():
        if resource["Type"] != _POLICY:
            continue
        statements = listed(resource["Properties"]["PolicyDocument"]["Statement"])
        if any(_REGISTER in listed(each.get("Action", [])) for each in statements):
            for each in statements:
                if _UPDATE in listed(each.get("Action", [])):
                    yield from (spelled(arn).rpartition("/")[2] for arn in listed(each["Resource"]))


def _live_floor(account: Account, service: str) -> int | None:
    """Return the smallest number of tasks that holds now; None if the service does not scale."""
    with readable_errors():
        found = account.client("application-autoscaling").describe_scalable_targets(
            ServiceNamespace="ecs", ResourceIds=[service]
        )["ScalableTargets"]
    return int(found[0][_LEAST]) if found else None


def _keep(logical_id: str, floor: int, template: dict[str, Any]) -> None:
    template["Resources"][logical_id]["Properties"][_LEAST] = floor
