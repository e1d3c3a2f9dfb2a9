"""Rules on observability."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.sections.environment.network import in_wrong_region, is_in_wrong_region
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import Path
from inference_catalog.log_groups import RETENTION_DAYS
from inference_contracts.errors import Finding

_PATH: Path = ("spec", "observability")


@rule
def logs_are_kept_for_a_period_on_offer(spec: Spec) -> Iterator[Finding]:
    """Check that CloudWatch Logs offers the retention period."""
    if spec.observability is None:
        return
    days = spec.observability.logs.retention_days
    if days not in RETENTION_DAYS:
        near = min(RETENTION_DAYS, key=lambda each: (abs(each - days), each))
        offered = ", ".join(str(each) for each in RETENTION_DAYS)
        message = f"got {days}, CloudWatch Logs offers {offered}; did you mean {near}?"
        yield Finding((*_PATH, "logs", "retentionDays"), message)


@rule
def topic_is_in_the_region(spec: Spec) -> Iterator[Finding]:
    """Check that the topic of alarms is in the region of the platform, as CloudWatch requires."""
    alarms = spec.observability.alarms if spec.observability else None
    arn = alarms.topic_arn if alarms else None
    if arn and is_in_wrong_region(arn, spec.environment):
        yield Finding((*_PATH, "alarms", "topicArn"), in_wrong_region("topic", arn, spec.environment.region))
