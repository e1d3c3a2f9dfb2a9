"""Rules on the batch bucket: what its policy can say, and when its objects expire."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Batch, Spec, Team
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding
from inference_contracts.units import HOURS_PER_DAY

#: Bytes of a bucket policy (https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html).
MAX_POLICY_BYTES: Final = 20 * 1024
# The lengths of names that nobody knows before the deployment are the longest that AWS allows.
_BUCKET_BYTES: Final = len("arn:aws-us-gov:s3:::") + 63
# Quotes and a comma.
_QUOTED: Final = 3
# The statements of one team without its prefixes and principals. They name the exempt roles of the platform.
_TEAM_BYTES: Final = 470
# The statements that do not belong to one team, without the list of all principals.
_COMMON_BYTES: Final = 1900
# A prefix is in the statement that allows and in the one that denies. A principal is also in a third one.
_PREFIX_COPIES: Final = 2
_PRINCIPAL_COPIES: Final = 3
#: First parts of the keys of `inference_contracts.batch_keys`.
RESERVED_NAMES: Final = ("jobs", "files", "uploads")


def policy_bytes(batch: Batch, teams: list[Team]) -> int:
    """Return the most bytes that the policy of the batch bucket may have.

    batch, teams: Queues, and the teams that submit jobs to them.
    """
    size = _COMMON_BYTES
    for team in teams:
        prefixes = (_BUCKET_BYTES + len(f"/{queue.name}/{team.name}/*") + _QUOTED for queue in batch.queues)
        principals = (len(arn) + _QUOTED for arn in team.principals)
        size += _TEAM_BYTES + _PREFIX_COPIES * sum(prefixes) + _PRINCIPAL_COPIES * sum(principals)
    return size


@rule
def teams_fit_a_policy(spec: Spec) -> Iterator[Finding]:
    """Check that one bucket policy can hold the permissions and denials of all teams."""
    batch, teams = spec.batch, [team for _, team in usable(spec.teams)]
    if batch is None or not teams:
        return
    size = policy_bytes(batch, teams)
    if size > MAX_POLICY_BYTES:
        principals = sum(len(team.principals) for team in teams)
        message = (
            f"got {len(teams)} teams with {principals} principals and {len(batch.queues)} queues, which "
            f"need a bucket policy of up to {size:,} bytes; S3 allows {MAX_POLICY_BYTES:,}: use fewer teams "
            "or queues, or roles that several people share"
        )
        yield Finding(("spec", "teams"), message)


@rule
def objects_outlive_jobs(spec: Spec) -> Iterator[Finding]:
    """Check that the objects of a job are kept until it has ended, and while it runs again after that."""
    if spec.batch is None:
        return
    longest = max((queue.deadline_hours for _, queue in usable(spec.batch.queues)), default=0.0)
    minimum = 2 * math.ceil(longest / HOURS_PER_DAY) + 1
    if spec.batch.keep_days < minimum:
        message = (
            f"got {spec.batch.keep_days}, a job of {longest:g} hours that is run again after its deadline "
            f"needs its objects for {minimum} days; raise it, or lower 'deadlineHours'"
        )
        yield Finding(("spec", "batch", "keepDays"), message)


@rule
def queue_is_not_a_prefix_of_the_platform(spec: Spec) -> Iterator[Finding]:
    """Check that no queue has the name of a prefix that the platform uses in the bucket."""
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        if queue.name in RESERVED_NAMES:
            message = (
                f"got {quote(queue.name)}, the platform keeps its own objects below "
                f"{', '.join(map(quote, RESERVED_NAMES))}; use another name"
            )
            yield Finding(("spec", "batch", "queues", index, "name"), message)
