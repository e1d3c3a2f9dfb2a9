"""Lifecycle rules that would delete objects which exist already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inference_blueprints.operate.aws.account import readable_errors
from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange

CHECK = "expirations"
CONSENT = "--expire-existing"
_BUCKET = "AWS::S3::Bucket"


def expired_objects(change: PlatformChange) -> Iterator[Finding]:
    """Keep the deployed expiration of objects that were written without the new one, until the user agrees.

    A rule counts for objects that were there before it, too (S3 User Guide, "Expiring objects").
    """
    if change.expires_existing:
        return
    for stack, logical_id, old, new in change.changed_resources():
        if new["Type"] != _BUCKET:
            continue
        deployed = _rules(old)
        sooner = [
            (prefix, days)
            for prefix, days in sorted(_rules(new).items())
            if not _covered(prefix, days, deployed)
        ]
        bucket = change.physical_ids(stack).get(logical_id) if sooner else None
        reached = {prefix: days for prefix, days in sooner if bucket and _has_objects(change, bucket, prefix)}
        if reached:
            rules = ", ".join(f"{prefix or 'all'} after {days} days" for prefix, days in reached.items())
            message = f"objects in {bucket} would be deleted ({rules}); deploy with {CONSENT} to agree"
            yield Held(CHECK, stack, message, partial(_keep, logical_id, reached, deployed))


def _rules(bucket: Mapping[str, Any]) -> dict[str, int]:
    """Return the days after which current objects expire, by prefix."""
    rules = bucket.get("Properties", {}).get("LifecycleConfiguration", {}).get("Rules", ())
    return {
        rule.get("Prefix", ""): int(rule["ExpirationInDays"])
        for rule in rules
        if rule.get("Status") == "Enabled" and "ExpirationInDays" in rule
    }


def _covered(prefix: str, days: int, deployed: Mapping[str, int]) -> bool:
    """Whether the objects expire as soon by a deployed rule."""
    return any(prefix.startswith(each) and limit <= days for each, limit in deployed.items())


def _has_objects(change: PlatformChange, bucket: str, prefix: str) -> bool:
    with readable_errors():
        answer = change.account.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
    return bool(answer["KeyCount"])


def _keep(
    logical_id: str, reached: Mapping[str, int], deployed: Mapping[str, int], template: dict[str, Any]
) -> None:
    """Take out rules, or give them the days that are deployed."""
    configuration = template["Resources"][logical_id]["Properties"]["LifecycleConfiguration"]
    kept = []
    for rule in configuration["Rules"]:
        prefix = rule.get("Prefix", "")
        if "ExpirationInDays" not in rule or prefix not in reached:
            kept.append(rule)
        elif prefix in deployed:
            kept.append({**rule, "ExpirationInDays": deployed[prefix]})
    configuration["Rules"] = kept
