"""Which keys of the platform's own programs are missing, or were not rotated in time.

The table of keys says it, and so finds every reason: a function that fails, one that may not be called, a
schedule that is gone, a label that blocks the next rotation. Events of AWS Secrets Manager do not:
`RotationFailed` comes by CloudTrail, and "to record events with one of the CloudTrail detail-type values, you
must enable a CloudTrail trail with logging" (Amazon EventBridge User Guide, "AWS service events delivered via
AWS CloudTrail"), which an account may lack. The function's own errors say nothing of a function that is not
called, and count what the next try repairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from inference_contracts.door_configuration import DoorModel
from inference_contracts.door_keys import KeyRecord
from inference_contracts.platform_keys import EXPIRY_DAYS, LATE_DAYS, ROTATION_DAYS

_DAY_SECONDS: Final = 24 * 3600


def late_keys(models: Sequence[DoorModel], keys: Sequence[KeyRecord], now: float) -> int:
    """Return how many teams of the platform's own models have no key that is valid and rotated in time.

    A key of a team or a program that was removed is not rotated any more, and does not count.

    models: All models of the front door.
    keys: Keys of the platform's own programs, which are not revoked.
    now: Seconds since 1970.
    """
    in_time = {(each.team, name) for each in keys if _is_in_time(each, now) for name in each.models or ()}
    asked = {(team, each.name) for each in models if each.caller for team in each.teams or ()}
    return len(asked - in_time)


def _is_in_time(key: KeyRecord, now: float) -> bool:
    # The function moves the end of a key's life with each rotation.
    begun = key.expires - EXPIRY_DAYS * _DAY_SECONDS
    has_ended = key.old_until is None or key.old_until < key.expires
    days = LATE_DAYS + (ROTATION_DAYS if has_ended else 0)
    return bool(key.hashes_at(now)) and now < begun + days * _DAY_SECONDS
