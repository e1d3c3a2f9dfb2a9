"""Resources with data that leave their stack."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.operate.changes.findings import Finding
from inference_blueprints.operate.changes.kafka_topics import topic_moves
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.changes.replaced_resources import DATA_TYPES, KEEPING
from inference_blueprints.operate.check_results import CheckResult

CHECK = "removed data"


def removed_data(change: PlatformChange) -> Iterator[Finding]:
    """Name data that is deleted because the blueprint does not ask for it any more.

    CloudFormation applies the policy of the deployed template (Template Reference, DeletionPolicy).
    """
    stays = {(stack, old_id) for stack, _, old_id in topic_moves(change)}
    for stack, logical_id, old in change.dropped_resources():
        if (stack, logical_id) in stays:
            continue
        if old["Type"] in DATA_TYPES and old.get("DeletionPolicy") not in KEEPING:
            message = f"{stack}: {old['Type']} {logical_id} is deleted with its data"
            yield CheckResult(CHECK, "warning", message)
