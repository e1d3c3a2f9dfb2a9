"""Floors on ECS, the smallest numbers of tasks, that the capacity shift or a schedule has set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange, Resource, Template
from inference_blueprints.operate.changes.template_values import listed, spelled

Properties = Mapping[str, Any]

CHECK = "floors"
_TARGET: Final = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY: Final = "AWS::IAM::Policy"
_REGISTER, _UPDATE = "application-autoscaling:RegisterScalableTarget", "ecs:UpdateService"
_MINIMUM: Final = "MinCapacity"
#: Targets of one answer (Application Auto Scaling API Reference, DescribeScalableTargets, MaxResults).
_PAGE: Final = 50


def kept_floors(change: PlatformChange) -> Iterator[Finding]:
    """Write the floor that holds now where CloudFormation would write that of the blueprint.

    CloudFormation registers a target with all properties as soon as one of them changes. Until the capacity
    shift has set its floor again, or until the next scheduled action, scaling policies could end tasks down
    to the blueprint's number. If only this number changes and what holds is in the new range, nothing is
    written.
    """
    changed = list(_changed_targets(change))
    floors = _live_floors(change.account, [str(new["ResourceId"]) for *_, new in changed])
    for stack, logical_id, before, after in changed:
        service = str(after["ResourceId"])
        floor = floors.get(service)
        if floor is None:
            continue
        kept = min(after["MaxCapacity"], max(after[_MINIMUM], floor))
        if kept == floor and {**before, _MINIMUM: after[_MINIMUM]} == after:
            kept = before[_MINIMUM]
        if kept != after[_MINIMUM]:
            name = service.rpartition("/")[2]
            message = f"{name} keeps the floor that its schedule or the capacity shift has set"
            yield Held(CHECK, stack, message, partial(_keep, logical_id, kept))


def _changed_targets(change: PlatformChange) -> Iterator[tuple[str, str, Properties, Properties]]:
    """Yield stack, logical ID and properties of each changed target whose floor something else sets."""
    shifted = {name for template in change.new.values() for name in _shifted_services(template)}
    for stack, logical_id, old, new in change.changed_resources():
        before, after = old.get("Properties", {}), new.get("Properties", {})
        if new["Type"] != _TARGET or before == after or before.get("ResourceId") != after.get("ResourceId"):
            continue
        if str(after["ResourceId"]).rpartition("/")[2] in shifted or after.get("ScheduledActions"):
            yield stack, logical_id, before, after


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


def _live_floors(account: Account, services: Sequence[str]) -> dict[str, int]:
    """Return the smallest number of tasks that holds now, of each service that scales."""
    with readable_errors():
        return {
            target["ResourceId"]: int(target[_MINIMUM])
            for start in range(0, len(services), _PAGE)
            for target in account.client("application-autoscaling").describe_scalable_targets(
                ServiceNamespace="ecs", ResourceIds=list(services[start : start + _PAGE])
            )["ScalableTargets"]
        }


def _keep(logical_id: str, floor: int, template: dict[str, Any]) -> None:
    template["Resources"][logical_id]["Properties"][_MINIMUM] = floor
