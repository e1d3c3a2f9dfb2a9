"""Properties that cannot change: CloudFormation would make another resource, and delete the old one."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.operate.changes.findings import Finding
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.changes.template_values import has_reference
from inference_blueprints.operate.check_results import CheckResult
from inference_catalog.cloudformation_types import cloudformation_types, value_at

CHECK = "replaced resources"
#: Types that hold data which nothing else has.
DATA_TYPES = frozenset(
    {
        "AWS::DynamoDB::GlobalTable",
        "AWS::EFS::FileSystem",
        "AWS::ElastiCache::ServerlessCache",
        "AWS::KMS::Key",
        "AWS::MSK::Cluster",
        "AWS::MSK::Topic",
        "AWS::S3::Bucket",
    }
)
#: Policies that keep a resource which leaves its stack (CloudFormation Template Reference, DeletionPolicy).
KEEPING = frozenset({"Retain", "RetainExceptOnCreate", "Snapshot"})


def replaced_resources(change: PlatformChange) -> Iterator[Finding]:
    """Find resources that CloudFormation refuses to replace, and data that would be lost.

    It refuses if the template names the resource, because two would have the name ("CloudFormation cannot
    update a stack when a custom-named resource requires replacing"). Values that CloudFormation computes are
    not compared.
    """
    for stack, logical_id, old, new in change.changed_resources():
        known = cloudformation_types().get(new["Type"])
        if known is None:
            continue
        before, after = old.get("Properties", {}), new.get("Properties", {})
        paths = [
            path
            for path in known.replaced_by(before, after)
            if not has_reference(value_at(before, path)) and not has_reference(value_at(after, path))
        ]
        if not paths:
            continue
        what = f"{stack}: {new['Type']} {logical_id}: {', '.join(paths)} cannot change"
        names = [after.get(name) for name in known.names]
        if names and None not in names and names == [before.get(name) for name in known.names]:
            message = (
                f"{what} while its name {names[-1]} stays; change it back, or remove it in one deployment"
            )
            yield CheckResult(CHECK, "error", f"{message} and add it in the next")
        elif new["Type"] in DATA_TYPES and new.get("UpdateReplacePolicy") not in KEEPING:
            yield CheckResult(CHECK, "error", f"{what}: its data would be deleted; change it back")
        elif new["Type"] == "AWS::Logs::LogGroup" and new.get("UpdateReplacePolicy") not in KEEPING:
            yield CheckResult(CHECK, "warning", f"{what}: its events are deleted, new ones go to a new group")
