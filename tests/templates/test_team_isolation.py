"""No team writes, reads, spends or deletes what belongs to another, whatever else its roles may do in S3."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inference_blueprints.spec.sections.batch.rules import RESERVED_NAMES, policy_bytes
from inference_blueprints.spec.types import Batch, Team
from inference_contracts import batch_keys
from tests.templates.checks.access import ACCOUNT, ALL_OF_S3, BUCKET, EMPTIES, Policies, policies_of, uses
from tests.templates.conftest import Synthesise

TEAMS = {
    "ads": f"arn:aws:iam::{ACCOUNT}:role/people/Ads",
    "search": f"arn:aws:iam::{ACCOUNT}:user/Search",
}
QUEUES = ("nightly", "urgent")
#: In no team, and not of the platform, although their names look like it.
OUTSIDERS = (
    f"arn:aws:iam::{ACCOUNT}:role/Analysts",
    f"arn:aws:iam::{ACCOUNT}:role/Ads",
    f"arn:aws:iam::{ACCOUNT}:role/try-Batch-JobsApiRole",
    f"arn:aws:iam::{ACCOUNT}:role/inference-blueprints/other/batch/JobsApiRole",
    f"arn:aws:iam::{ACCOUNT}:user/Ads",
)
ON_OBJECTS = (
    *("s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectAttributes", "s3:PutObject", "s3:PutObjectAcl"),
    *("s3:PutObjectTagging", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"),
)
ON_THE_BUCKET = (
    *("s3:PutBucketPolicy", "s3:DeleteBucketPolicy", "s3:PutReplicationConfiguration", "s3:ListBucket"),
    *("s3:PutLifecycleConfiguration", "s3:PutBucketNotification", "s3:ListBucketVersions"),
)
#: Keys by the team that may use them; those of the platform belong to no team.
KEYS = {
    f"{queue}/{team}/2026-11-22/manifest.json": team for queue in QUEUES for team in TEAMS
} | dict.fromkeys(
    (
        *("jobs/batch_1/request.json", "jobs/batch_1/output.jsonl", "jobs/batch_1/shards/0.jsonl"),
        *("files/ads/file-1", "files/search/file-2", "uploads/upload-1/part-1"),
    )
)


def with_two_teams(spec: dict[str, Any]) -> None:
    rates = {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4}
    spec["environment"] |= {"account": ACCOUNT, "dataRemoval": "destroy"}
    spec["teams"] = [
        {"name": name, "principals": [arn], "monthlyBudgetUsd": 1} for name, arn in TEAMS.items()
    ]
    spec["batch"] = {"queues": [{"name": name, "model": "qwen3-8b", "rates": rates} for name in QUEUES]}
    spec["signalStore"] = {"valkey": {"maxGb": 1}, "signals": [{"name": "captions", "team": "ads"}]}


@pytest.fixture(scope="module")
def policies(synthesise: Synthesise) -> Policies:
    return policies_of(synthesise(with_two_teams))


def leaks(policies: Policies) -> list[str]:
    """Return what somebody may do with objects that are not theirs, or with the bucket."""
    people = {arn: team for team, arn in TEAMS.items()} | dict.fromkeys(OUTSIDERS, "nobody")
    found = [
        f"{arn} {action} {key}"
        for arn, team in people.items()
        for key, owner in KEYS.items()
        for action in ON_OBJECTS
        if owner != team and policies.allow(arn, action, f"{BUCKET}/{key}", ALL_OF_S3)
    ]
    found += [
        f"{arn} {action}"
        for arn in TEAMS.values()
        for action in ON_THE_BUCKET
        if policies.allow(arn, action, BUCKET, ALL_OF_S3)
    ]
    # A manifest costs its team money, so no function may write or delete one either.
    return found + [
        f"{arn} {action} {key}"
        for arn in policies.roles
        for key, owner in KEYS.items()
        for action in ("s3:PutObject", "s3:DeleteObject")
        if owner and policies.allow(arn, action, f"{BUCKET}/{key}")
    ]


def losses(policies: Policies) -> list[str]:
    """Return what the platform's roles, and the teams, need and may not do."""
    found = [
        f"{arn} {action} {resource}"
        for arn, policy in policies.roles.items()
        for action, resource in uses(policy)
        if not policies.allow(arn, action, resource)
    ]
    found += [
        f"{EMPTIES} s3:DeleteObjectVersion {key}"
        for key in KEYS
        if not policies.allow(EMPTIES, "s3:DeleteObjectVersion", f"{BUCKET}/{key}")
    ]
    return found + [
        f"{arn} s3:PutObject {queue}"
        for team, arn in TEAMS.items()
        for queue in QUEUES
        if not policies.allow(arn, "s3:PutObject", f"{BUCKET}/{queue}/{team}/manifest.json")
    ]


def test_nobody_reaches_what_belongs_to_another(policies: Policies) -> None:
    assert leaks(policies) == []


def test_the_platform_and_each_team_reach_what_they_need(policies: Policies) -> None:
    assert sum(1 for policy in policies.roles.values() for _ in uses(policy)) > 40
    assert losses(policies) == []


def test_a_team_without_rights_of_its_own_may_only_upload_manifests(policies: Policies) -> None:
    allowed = [
        (action, key)
        for key in KEYS
        for action in ON_OBJECTS
        if policies.allow(TEAMS["ads"], action, f"{BUCKET}/{key}")
    ]
    assert allowed == [("s3:PutObject", f"{queue}/ads/2026-11-22/manifest.json") for queue in QUEUES]


def test_a_rule_of_the_blueprint_knows_how_long_the_policy_may_become(policies: Policies) -> None:
    """With names as long as AWS and the blueprint allow; too low, and the deployment fails after minutes."""
    teams = [
        Team.model_validate({"name": name, "principals": [arn], "monthlyBudgetUsd": 1})
        for name, arn in TEAMS.items()
    ]
    batch = Batch.model_validate(
        {
            "queues": [
                {
                    "name": name,
                    "model": "m",
                    "rates": {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 1},
                }
                for name in QUEUES
            ]
        }
    )
    spelled = json.dumps(policies.bucket, separators=(",", ":"))
    for short, longest in (
        (BUCKET, "arn:aws-us-gov:s3:::" + "b" * 63),
        ("/inference-blueprints/try/", f"/inference-blueprints/{'p' * 40}/"),
        (EMPTIES, f"arn:aws-us-gov:iam::{ACCOUNT}:role/" + "e" * 64),
    ):
        assert short in spelled
        spelled = spelled.replace(short, longest)
    estimate = policy_bytes(batch, teams)
    assert 0.85 * estimate < len(spelled) <= estimate


def test_no_queue_may_have_the_name_of_a_prefix_of_the_platform() -> None:
    assert {f"{name}/" for name in RESERVED_NAMES} == {
        value for name, value in vars(batch_keys).items() if name.endswith("_PREFIX")
    }


# Each mutation changes the statements of the bucket's policy as a mistake in the code would.


def denials(statements: list[Any], part: str) -> list[Any]:
    """The denials about resources with this part in their name."""
    found = [each for each in statements if each["Effect"] == "Deny" and part in str(each["Resource"])]
    denied = [each for each in found if "aws:SecureTransport" not in str(each["Condition"])]
    assert denied
    return denied


def without(part: str) -> Callable[[list[Any]], None]:
    def change(statements: list[Any]) -> None:
        for each in denials(statements, part):
            statements.remove(each)

    return change


def without_the_bucket(statements: list[Any]) -> None:
    statements.remove(next(each for each in denials(statements, BUCKET) if each["Resource"] == BUCKET))


def only_writing(statements: list[Any]) -> None:
    for each in denials(statements, "/ads/"):
        each["Action"] = "s3:PutObject"


def all_but_deleting_versions(statements: list[Any]) -> None:
    for each in denials(statements, "jobs/"):
        del each["Action"]
        each["NotAction"] = "s3:DeleteObjectVersion"


def another_team_is_exempt(statements: list[Any]) -> None:
    for each in denials(statements, "/ads/"):
        each["Condition"]["ArnNotLike"]["aws:PrincipalArn"].append(TEAMS["search"])


def names_without_a_path(statements: list[Any]) -> None:
    for each in denials(statements, "/ads/"):
        each["Condition"]["ArnNotLike"]["aws:PrincipalArn"].append(f"arn:aws:iam::{ACCOUNT}:role/try-*")


def every_role_is_of_the_platform(statements: list[Any]) -> None:
    for each in denials(statements, "jobs/"):
        each["Condition"]["ArnNotLike"]["aws:PrincipalArn"] = [f"arn:aws:iam::{ACCOUNT}:role/*"]


def a_queue_is_forgotten(statements: list[Any]) -> None:
    for each in denials(statements, "/ads/"):
        each["Resource"] = [arn for arn in each["Resource"] if "urgent" not in arn]


def uploads_are_forgotten(statements: list[Any]) -> None:
    for each in denials(statements, "uploads/"):
        each["Resource"] = [arn for arn in each["Resource"] if "uploads" not in arn]


def conditions_are_the_wrong_way_round(statements: list[Any]) -> None:
    for each in denials(statements, "/search/"):
        each["Condition"] = {"ArnLike": each["Condition"]["ArnNotLike"]}


def a_denial_becomes_a_grant(statements: list[Any]) -> None:
    for each in denials(statements, "files/"):
        each["Effect"] = "Allow"


MUTATIONS = {
    "a team is not protected": without("/ads/"),
    "jobs and files are not protected": without("jobs/"),
    "the bucket is not protected": without_the_bucket,
    "only writing is denied": only_writing,
    "deleting versions is not denied": all_but_deleting_versions,
    "another team is exempt": another_team_is_exempt,
    "roles are told by their name": names_without_a_path,
    "every role counts as the platform's": every_role_is_of_the_platform,
    "a queue is forgotten": a_queue_is_forgotten,
    "uploads are forgotten": uploads_are_forgotten,
    "a condition is the wrong way round": conditions_are_the_wrong_way_round,
    "a denial becomes a grant": a_denial_becomes_a_grant,
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mistake_in_the_policy_of_the_bucket_is_found(policies: Policies, mutation: str) -> None:
    bucket = copy.deepcopy(policies.bucket)
    MUTATIONS[mutation](bucket["Statement"])
    assert leaks(replace(policies, bucket=bucket)) != []


def test_a_function_that_may_write_manifests_is_found(policies: Policies) -> None:
    [name] = [arn for arn in policies.roles if "JobsCronRole" in arn]
    wider = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"{BUCKET}/*"}
    roles = {**policies.roles, name: {"Statement": [*policies.roles[name]["Statement"], wider]}}
    assert any(name in leak for leak in leaks(replace(policies, roles=roles)))


def test_a_role_outside_of_the_path_is_found(policies: Policies) -> None:
    roles = {
        arn.replace("/inference-blueprints/try/batch/", "/"): each for arn, each in policies.roles.items()
    }
    assert losses(replace(policies, roles=roles)) != []
