"""Keys with which the platform's own programs call models through the front door.

Workers of batch, streaming jobs and the canary are callers like others: each request has a key, is charged to
a team and finds its model by a name. Their keys are made and rotated by a function of AWS Secrets Manager and
belong to no person. Their models have names that no other key may use, so that a queue or a job keeps its own
deployments and its own priority.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from inference_contracts.json_record import JsonRecord

#: A part of the platform that calls models.
PlatformCaller = Literal["batch", "streaming", "canary"]
#: All of them.
PLATFORM_CALLERS: Final[tuple[PlatformCaller, ...]] = get_args(PlatformCaller)

#: Variable of a program: ARN of the secret with its keys.
SECRET_VARIABLE: Final = "DOOR_KEYS_SECRET"  # noqa: S105 -- the name of a variable
#: Time between two looks at the secret, in seconds. A program looks at once, too, when its key is refused.
LOOK_SECONDS: Final = 600
#: Team that the canary's requests are charged to. No team of a blueprint has this name, and it has no budget.
PLATFORM_TEAM: Final = "_platform"


#: Tag of a secret: the owner of its keys, as `KeyOwner.tag`.
OWNER_TAG: Final = "inference-blueprints:door-keys"
#: Days between two rotations, and days after which a key expires that was not rotated any more.
ROTATION_DAYS: Final = 30
EXPIRY_DAYS: Final = 90
#: Hours for which the old key stays valid after a rotation.
OVERLAP_HOURS: Final = 24
#: Days after which a rotation that is due, or has begun, does not end by itself any more. One that is due
#: begins within a day ("For a ScheduleExpression in days, the window automatically closes at the end of the
#: UTC day": `RotationRulesType`, AWS Secrets Manager API Reference). Another day is for what is tried again.
LATE_DAYS: Final = 2
#: Variables of the function that rotates: names of the table of keys and of the bucket with the record of
#: administration, `metadata.name`, and the file with `KeyOwners` beside its code.
ROTATION_TABLE: Final = "KEY_ROTATION_TABLE"
ROTATION_AUDIT_BUCKET: Final = "KEY_ROTATION_AUDIT_BUCKET"
ROTATION_PLATFORM: Final = "KEY_ROTATION_PLATFORM"
ROTATION_OWNERS: Final = "KEY_ROTATION_OWNERS"


@dataclass(frozen=True, slots=True)
class KeyOwner(JsonRecord):
    """A program of the platform with the keys in one secret."""

    caller: PlatformCaller
    name: str
    """`caller`, `name`: Batch, the canary, or the streaming job of this name."""
    teams: tuple[str, ...]
    """Teams that its requests are charged to, each with a key."""
    models: tuple[str, ...]
    """Names of its models at the front door, which each of its keys may use."""

    @property
    def tag(self) -> str:
        """How its secret is tagged, and what people call its keys."""
        return f"{self.caller}/{self.name}" if self.name else self.caller


@dataclass(frozen=True, slots=True)
class KeyOwners(JsonRecord):
    """All programs of a platform that have keys."""

    owners: tuple[KeyOwner, ...]


def way_model(caller: PlatformCaller, name: str, deployment: str = "") -> str:
    """Return the name under which a program asks the front door for its model.

    name: Model of the queue or of the canary's question; name of the streaming job.
    deployment: Of batch, a deployment that may have no workers: batch asks it by a name of its own, and only
        while it has some. Empty for all others together.
    """
    return f"{caller}:{name}/{deployment}" if deployment else f"{caller}:{name}"


def read_keys(text: str) -> Mapping[str, str]:
    """Return the key of each team in the value of a secret. Raises ValueError if it has another form.

    text: Value of the secret: a JSON object with a key for each team.
    """
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError("the secret is no JSON object with a key for each team")
    return found


def write_keys(keys: Mapping[str, str]) -> str:
    """Return the value of a secret.

    keys: The key of each team.
    """
    return json.dumps(dict(keys), separators=(",", ":"), sort_keys=True)
