"""Who gets a certificate on a platform with a front door."""

from __future__ import annotations

from typing import Literal

from inference_blueprints.serving.types import ServingPlan
from inference_contracts.door_identities import SERVER_NAME, Caller, caller_uri, server_uri
from inference_contracts.records import dataclass

DOOR: Caller = "door"


@dataclass(frozen=True, slots=True)
class PlannedIdentity:
    """Somebody with a certificate."""

    name: str
    """The caller, or the release of a deployment, none of which is called like a caller."""
    uri: str
    host_names: tuple[str, ...]
    """`uri`, `host_names`: What the certificate certifies."""
    usage: Literal["server", "client"]
    """Whether it answers connections, or only makes them."""


def planned_identities(plan: ServingPlan) -> tuple[PlannedIdentity, ...]:
    """Return who gets a certificate: the door, each caller that a deployment admits, and each deployment.

    plan: The plan of a platform.
    """
    if plan.front_door is None:
        return ()
    platform = plan.front_door.configuration.platform
    found = [PlannedIdentity(DOOR, caller_uri(platform, DOOR), (plan.front_door.host_name,), "server")]
    entries = [deployment.entry_point.callers for model in plan.models for deployment in model.deployments]
    admitted = [each for each in entries if each]
    callers = {caller for each in admitted for caller in each.callers} - {DOOR}
    found += [PlannedIdentity(each, caller_uri(platform, each), (), "client") for each in sorted(callers)]
    found += [
        PlannedIdentity(
            each.release, server_uri(platform, each.release), (each.release, SERVER_NAME), "server"
        )
        for each in admitted
    ]
    return tuple(found)
