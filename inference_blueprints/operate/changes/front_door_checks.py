"""Changes at the front door that callers would notice.

Host names of models move to it, and back, in an order in which callers are answered. A time zone further west
begins the days and months of budgets anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from inference_blueprints.operate.changes.platform_change import (
    Finding,
    Held,
    PlatformChange,
    Resource,
    Template,
    stack_outputs_of,
)
from inference_blueprints.operate.check_results import CheckResult
from inference_contracts import reconciliation_names
from inference_contracts.door_identities import OLD_NAMES_RULE

DOOR_SWITCH_CHECK: Final = "host names"
MOVED_DAYS_CHECK: Final = "time zone"
_RULE: Final = "AWS::ElasticLoadBalancingV2::ListenerRule"
_BEFORE: Final = "deploy with 'oldHostNames: {models: {until: ...}}' first"


def switched_host_names(change: PlatformChange) -> Iterator[Finding]:
    """Refuse a switch for which entry points are not ready, and hold one until they are.

    CloudFormation changes the rules of the load balancer before it replaces entry points, because a target
    group takes targets only while a rule names it (Amazon ECS, CreateService, "loadBalancers").
    """
    found: dict[str, dict[str, Resource]] = {}
    for stack, name, old, new in change.changed_resources():
        if old["Type"] == _RULE and _leads_to_door(old) != _leads_to_door(new):
            found.setdefault(stack, {})[name] = old
    for stack, rules in found.items():
        old, new = change.deployed[stack], change.new[stack]
        if not _admits_callers(old):
            message = (
                f"{stack}: its host names would lead to the front door, which its entry points do not admit "
                f"yet, and callers would need a key at once; {_BEFORE}, give keys to callers, and remove "
                "'oldHostNames' then"
            )
            yield CheckResult(DOOR_SWITCH_CHECK, "error", message)
        elif not _admits_callers(new):
            message = (
                f"{stack}: its host names would lead to entry points that admit the front door only, until "
                f"they are replaced; {_BEFORE}, and remove 'frontDoor' then"
            )
            yield CheckResult(DOOR_SWITCH_CHECK, "error", message)
        elif OLD_NAMES_RULE in json.dumps(new) and OLD_NAMES_RULE not in json.dumps(old):
            message = "host names lead to the front door until entry points admit callers without a key"
            yield Held(DOOR_SWITCH_CHECK, stack, message, partial(_keep_rules, rules))


def moved_days(change: PlatformChange, now: datetime | None = None) -> Iterator[Finding]:
    """Warn of a time zone in which the present month began later: the ledger would count it from nothing.

    now: The present time. None for that of the clock.
    """
    present = (now or datetime.now(UTC)).astimezone(UTC)
    month = present.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for stack, _, old, new in change.changed_resources():
        before, after = _time_zone(old), _time_zone(new)
        # Summer time may have begun or ended since the month did.
        if before and after and any(_clock(after, at) < _clock(before, at) for at in (month, present)):
            message = (
                f"{stack}: 'timeZone' moves west, from {before} to {after}, where the present day and month "
                "began later; partly spent budgets begin anew, so deploy it at the beginning of a month"
            )
            yield CheckResult(MOVED_DAYS_CHECK, "warning", message)


def _clock(zone: str, at: datetime) -> datetime:
    """Return what clocks in a time zone show at a time."""
    return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def _time_zone(resource: Resource) -> str | None:
    """Return the time zone of the budgets. None if the resource is not the function that has it."""
    environment = resource.get("Properties", {}).get("Environment", {})
    zone = environment.get("Variables", {}).get(reconciliation_names.ZONE) if environment else None
    return zone if isinstance(zone, str) else None


def _leads_to_door(rule: Resource) -> bool:
    """Whether the door is among the targets. It is in another stack, and those of the model are not."""
    return any(stack.endswith("-FrontDoor") for stack, _ in stack_outputs_of(rule["Properties"]["Actions"]))


def _admits_callers(template: Template) -> bool:
    """Whether entry points of a model have the sidecar that admits callers: roles read its certificate."""
    return any(stack.endswith("-Certificates") for stack, _ in stack_outputs_of(template["Resources"]))


def _keep_rules(kept: dict[str, Resource], template: dict[str, Any]) -> None:
    template["Resources"].update(kept)
