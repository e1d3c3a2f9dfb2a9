"""Helm releases that another stack takes over."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange, Resource
from inference_blueprints.operate.changes.running_jobs import kept_stacks
from inference_blueprints.operate.changes.template_values import references
from inference_blueprints.operate.check_results import CheckResult

CHECK = "Helm releases"
_CHART = "Custom::AWSCDK-EKS-HelmChart"
#: Metadata of a resource that one step keeps. CloudFormation does not change a deletion policy alone, but it
#: does together with metadata (CloudFormation User Guide, "Update behaviors of stack resources").
_MARK = "inference-blueprints:step"


def moved_releases(change: PlatformChange) -> Iterator[Finding]:
    """Keep a release that a stack gives away while another one takes it over.

    CDK's handler uninstalls a release when its resource is deleted (aws-cdk, kubectl-handler/helm), also when
    another stack has upgraded it since. It also uninstalls it if the creation in the other stack is rolled
    back. So both have the policy Retain for one step. If the first stack stays as it is because of running
    jobs, it keeps the release.
    """
    kept = kept_stacks(change)
    new = {
        _release(resource): (stack, logical_id)
        for stack, template in change.new.items()
        for logical_id, resource in template.get("Resources", {}).items()
        if resource["Type"] == _CHART
    }
    for stack, logical_id, old in change.dropped_resources():
        if old["Type"] != _CHART or _release(old) not in new:
            continue
        taker, taken = new[_release(old)]
        if taker == stack or old.get("DeletionPolicy") == "Retain":
            continue
        if stack in kept:
            why = f"release {'/'.join(_release(old))} stays in {stack}"
            yield Held(CHECK, taker, f"{why} while its jobs run", partial(_leave_out, taken))
            continue
        missing = sorted(set(references(old)) - change.new[stack]["Resources"].keys() - _PSEUDO)
        name = "/".join(_release(old))
        if missing:
            message = f"{stack}: release {name} goes to {taker}, and needs {', '.join(missing)} of {stack}"
            yield CheckResult(CHECK, "error", f"{message} until then; deploy an earlier release first")
            continue
        why = f"release {name} goes to {taker}"
        yield Held(CHECK, stack, f"{why}; this stack gives it up afterwards", partial(_keep, logical_id, old))
        yield Held(CHECK, taker, f"{why}, which keeps it also if it fails", partial(_retain, taken))


_PSEUDO = frozenset({"AWS::AccountId", "AWS::Region", "AWS::Partition", "AWS::URLSuffix", "AWS::StackName"})


def _release(resource: Resource) -> tuple[str, str]:
    properties = resource["Properties"]
    return properties.get("Namespace", "default"), properties["Release"]


def _keep(logical_id: str, old: Resource, template: dict[str, Any]) -> None:
    """Leave the resource in its stack as it is deployed."""
    kept = copy.deepcopy(dict(old))
    kept["DependsOn"] = [each for each in kept.get("DependsOn", ()) if each in template["Resources"]]
    template["Resources"][logical_id] = kept
    _retain(logical_id, template)


def _leave_out(logical_id: str, template: dict[str, Any]) -> None:
    """Take a resource out of a template. Nothing but an order of creation refers to a release."""
    del template["Resources"][logical_id]
    for resource in template["Resources"].values():
        if logical_id in resource.get("DependsOn", ()):
            resource["DependsOn"] = [each for each in resource["DependsOn"] if each != logical_id]


def _retain(logical_id: str, template: dict[str, Any]) -> None:
    """Keep what the resource stands for when the stack loses it."""
    resource = template["Resources"][logical_id]
    resource["DeletionPolicy"] = "Retain"
    resource["Metadata"] = {**resource.get("Metadata", {}), _MARK: "kept"}
