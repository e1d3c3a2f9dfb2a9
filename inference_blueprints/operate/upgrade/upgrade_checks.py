"""Checks before a platform is upgraded, and the steps of the upgrade."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inference_blueprints.operate.changes.change_checks import check_change
from inference_blueprints.operate.changes.platform_change import Held, Prepared, read_change
from inference_blueprints.operate.changes.process_changes import (
    PROCESS_CHECK,
    ProcessResult,
    has_processes,
)
from inference_blueprints.operate.check_results import CheckResult, Checks, Severity, run_checks
from inference_blueprints.operate.kubernetes import connect
from inference_blueprints.operate.upgrade.proposal import Proposal
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.lock.lock import HELD_POOL, Change, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text
from inference_blueprints.synthesis import synthesise
from inference_catalog.catalogue import shipped
from inference_catalog.releases import version_order

# What `deploy` will do with the proposed templates.

CHECK = "templates"


def template_changes(proposal: Proposal) -> Iterator[CheckResult]:
    """Compare the deployed templates with the proposed ones.

    Raises UserError if AWS refuses to return a template, or the proposed blueprint cannot be synthesised.
    """
    if proposal.cluster is None and not proposal.on_ecs:
        return
    with tempfile.TemporaryDirectory() as folder:
        assembly = Path(folder, "cdk.out")
        synthesise(str(_proposed_file(proposal, Path(folder, "proposed"))), assembly)
        change = read_change(proposal.account, proposal.blueprint.metadata.name, assembly)
        found = check_change(change)
    if proposal.on_ecs and not change.deployed:
        name = proposal.blueprint.metadata.name
        yield CheckResult(CHECK, "ok", f"{name} is not deployed; its first deployment has these versions")
    elif all(isinstance(each, ProcessResult) for each in found):
        yield CheckResult(CHECK, "ok", f"{len(change.deployed)} stacks can be updated in one step")
    if has_processes(change) and not any(isinstance(each, ProcessResult) for each in found):
        yield CheckResult(PROCESS_CHECK, "ok", "no process of a model changes, so none restarts")
    for finding in found:
        if isinstance(finding, Held):
            yield CheckResult(CHECK, "warning", f"held by deploy: {finding.stack}: {finding.message}")
        elif isinstance(finding, Prepared):
            yield CheckResult(CHECK, "warning", f"prepared by deploy: {finding.stack}: {finding.message}")
        else:
            yield finding


def _proposed_file(proposal: Proposal, folder: Path) -> Path:
    """Write the proposed blueprint and lock beside what is next to the present ones."""
    folder.mkdir()
    file = folder / proposal.path.name
    own = {proposal.path.name, lock_path(proposal.path).name}
    for path in proposal.path.resolve().parent.iterdir():
        if path.name not in own:
            (folder / path.name).symlink_to(path)
    file.write_text(proposal.text, "utf-8")
    lock_path(file).write_text(lock_text(proposal.new), "utf-8")
    return file


# The steps of an upgrade, in the order of the deployment.


def steps(proposal: Proposal) -> list[str]:
    """Return the steps of `deploy`, one line each, without parts that do not change."""
    return list(_steps(proposal, proposal.changes))


def _steps(proposal: Proposal, changes: Sequence[Change]) -> Iterator[str]:
    if not proposal.on_ecs:
        yield from _cluster_steps(proposal, changes)
    engines = _parts(changes, "engine ")
    if engines:
        yield f"models: new workers with {', '.join(engines)}, according to each model's rollout"


def _cluster_steps(proposal: Proposal, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the steps that only EKS has."""
    is_new_minor = proposal.new_version != proposal.old_version
    if is_new_minor:
        yield f"control plane: {proposal.old_version} to {proposal.new_version}"
    add_ons = _parts(changes, "add-on ")
    if add_ons:
        yield f"EKS add-ons: {', '.join(add_ons)}"
    if is_new_minor:
        yield f"system nodes: to {proposal.new_version}, one by one"
    charts = _parts(changes, "chart ")
    if charts:
        yield f"controllers, in this order: {', '.join(charts)}"
    yield from _pool_steps(proposal, changes, is_new_minor=is_new_minor)


def _pool_steps(proposal: Proposal, changes: Sequence[Change], *, is_new_minor: bool) -> Iterator[str]:
    """Yield the pools whose nodes are replaced, and the pools that are held."""
    held = proposal.new.held_pools
    released = {
        change.part.removeprefix(HELD_POOL) for change in changes if change.part.startswith(HELD_POOL)
    }
    changed = {
        system.name for system in shipped().operating_systems.values() if _parts(changes, system.ami_family)
    }
    systems = build_plan(proposal.blueprint).node_systems
    following = [
        name for name in proposal.pools if is_new_minor or systems[name] in changed or name in released
    ]
    if following:
        yield (
            f"nodes of {', '.join(following)}: Karpenter replaces them, one at a time per pool "
            "and within the models' disruption budgets"
        )
    if held:
        images = ", ".join(f"{name} ({image.kubernetes})" for name, image in held.items())
        yield (
            f"held: {images}; when the other nodes are upgraded and healthy, run "
            f"blueprints upgrade {proposal.path} --pools NAME,... --apply, and deploy again"
        )


def _parts(changes: Sequence[Change], prefix: str) -> list[str]:
    """Return the names of components whose version changes, without those that are only newly pinned."""
    return [
        change.part.removeprefix(prefix)
        for change in changes
        if change.part.startswith(prefix) and not change.part.endswith(", digest") and change.old
    ]


#: Kubelets may be this many minor versions older than the API server
#: (kubernetes.io, "Version Skew Policy").
MAXIMUM_SKEW = 3
_ACTIVE = "ACTIVE"
_SEVERITIES: Mapping[str, Severity] = {"ERROR": "error", "WARNING": "warning", "UNKNOWN": "unknown"}
_REQUEST_TIMEOUT = "--request-timeout=15s"


def version_step(proposal: Proposal) -> Iterator[CheckResult]:
    """Refuse what EKS refuses: a downgrade, and skipping a minor version."""
    old, new = proposal.old_version, proposal.new_version
    minors = _minor(new) - _minor(old)
    if minors < 0:
        message = f"{old} runs, and EKS cannot downgrade it to {new}; set version {old} in the blueprint"
        yield CheckResult("Kubernetes", "error", message)
    elif minors > 1:
        following = f"1.{_minor(old) + 1}"
        command = f"blueprints upgrade {proposal.path} --to {following}"
        message = f"{old} runs, and {new} skips a minor version; EKS upgrades one at a time"
        yield CheckResult("Kubernetes", "error", message, command)
    else:
        yield CheckResult("Kubernetes", "ok", f"{old} to {new}" if minors else f"{old} stays")


def control_plane(proposal: Proposal) -> Iterator[CheckResult]:
    """Check that the control plane can be updated."""
    cluster = proposal.cluster
    if cluster is None:
        name = proposal.blueprint.metadata.name
        yield CheckResult("cluster", "ok", f"{name} is not deployed; its first deployment has these versions")
    elif cluster.status != _ACTIVE:
        yield CheckResult(
            "cluster", "error", f"{cluster.name} is {cluster.status}; wait until it is {_ACTIVE}"
        )
    else:
        yield CheckResult("cluster", "ok", f"{cluster.name} is {_ACTIVE}")


def insights(proposal: Proposal) -> Iterator[CheckResult]:
    """Read EKS's upgrade insights for the new version, such as the use of removed APIs."""
    if proposal.cluster is None or proposal.new_version == proposal.cluster.version:
        return
    eks = proposal.account.client("eks")
    wanted = {"categories": ["UPGRADE_READINESS"], "kubernetesVersions": [proposal.new_version]}
    pages = eks.get_paginator("list_insights").paginate(clusterName=proposal.cluster.name, filter=wanted)
    found = [insight for page in pages for insight in page["insights"]]
    passing = 0
    for insight in found:
        status = insight["insightStatus"]
        if status["status"] == "PASSING":
            passing += 1
            continue
        answer = eks.describe_insight(clusterName=proposal.cluster.name, id=insight["id"])
        message = f"{insight['name']}: {_advice(answer['insight'], status.get('reason', ''))}"
        yield CheckResult("insights", _SEVERITIES[status["status"]], message)
    if not found:
        message = f"EKS has no insights for {proposal.new_version} yet; it updates them once a day"
        yield CheckResult("insights", "unknown", message)
    elif passing:
        yield CheckResult("insights", "ok", f"{passing} of {len(found)} pass for {proposal.new_version}")


def _advice(insight: Mapping[str, Any], reason: str) -> str:
    """Return why an insight does not pass, who uses removed APIs, and EKS's recommendation."""
    details = insight.get("categorySpecificSummary", {}).get("deprecationDetails", [])
    used = [
        f"{each['usage']} is used by {', '.join(client['userAgent'] for client in each['clientStats'])}"
        for each in details
        if each.get("clientStats")
    ]
    return "; ".join(part for part in (reason, *used, insight.get("recommendation", "")) if part)


def add_ons(proposal: Proposal) -> Iterator[CheckResult]:
    """Check that every add-on is healthy and has a version for the new Kubernetes version."""
    deployed = proposal.cluster.add_ons if proposal.cluster else {}
    for name, part in deployed.items():
        version = proposal.add_ons[name]
        if version is None:
            message = f"{name} {part.version}: no version runs on {proposal.new_version}; wait for one"
            yield CheckResult("add-ons", "error", message)
        elif part.status != _ACTIVE:
            message = f"{name} {part.version} is {part.status}; fix it first"
            command = (
                f"aws eks describe-addon --cluster-name {proposal.blueprint.metadata.name} "
                f"--addon-name {name} --query addon.health --region {proposal.account.region}"
            )
            yield CheckResult("add-ons", "error", message, command)
        else:
            yield CheckResult("add-ons", "ok", f"{name} {version} runs on {proposal.new_version}")


def charts(proposal: Proposal) -> Iterator[CheckResult]:
    """Check that every chart supports the new Kubernetes version."""
    version = proposal.new_version
    for chart in proposal.blueprint.releases.charts.values():
        if version_order(chart.minimum_kubernetes) > version_order(version):
            message = (
                f"{chart.name} {chart.version} needs Kubernetes {chart.minimum_kubernetes}, not {version}"
            )
            command = f"blueprints upgrade {proposal.path} --to {chart.minimum_kubernetes}"
            yield CheckResult("charts", "error", message, command)


def nodegroups(proposal: Proposal) -> Iterator[CheckResult]:
    """Check that managed nodes are healthy and not too old for the new control plane."""
    for name, part in (proposal.cluster.nodegroups if proposal.cluster else {}).items():
        skew = _minor(proposal.new_version) - _minor(part.version)
        if part.status != _ACTIVE:
            message = f"node group {name} is {part.status}; wait until it is {_ACTIVE}"
            yield CheckResult("node groups", "error", message)
        elif skew > MAXIMUM_SKEW:
            yield CheckResult("node groups", "error", _too_old(f"node group {name}", part.version, proposal))
        else:
            yield CheckResult("node groups", "ok", f"{name} is {_ACTIVE} with {part.version}")


def held_pools(proposal: Proposal) -> Iterator[CheckResult]:
    """Check that the nodes of held pools are new enough for the new control plane."""
    for name, image in proposal.new.held_pools.items():
        if _minor(proposal.new_version) - _minor(image.kubernetes) > MAXIMUM_SKEW:
            command = f"blueprints upgrade {proposal.path} --pools {name} --apply"
            yield CheckResult("pools", "error", _too_old(f"pool {name}", image.kubernetes, proposal), command)


def cluster_objects(proposal: Proposal) -> Iterator[CheckResult]:
    """Check for nodes that are too old, and for disruption budgets that block draining.

    Raises KubectlFailed if the API server does not answer, for example from outside a private network.
    """
    if proposal.cluster is None:
        return
    with tempfile.TemporaryDirectory() as directory:
        kubectl = connect(proposal.account, proposal.cluster.name, Path(directory))
        nodes = kubectl.get("nodes", _REQUEST_TIMEOUT)
        budgets = kubectl.get("poddisruptionbudgets", "--all-namespaces", _REQUEST_TIMEOUT)
    yield from _nodes(nodes, proposal)
    yield from _budgets(budgets)


def _nodes(nodes: list[dict[str, Any]], proposal: Proposal) -> Iterator[CheckResult]:
    """Yield an error for every node that is too old, else one line."""
    old = []
    for node in nodes:
        version = node["status"]["nodeInfo"]["kubeletVersion"]
        if _minor(proposal.new_version) - _minor(version) > MAXIMUM_SKEW:
            old.append(_too_old(f"node {node['metadata']['name']}", version, proposal))
    yield from (CheckResult("nodes", "error", message) for message in old)
    if not old:
        yield CheckResult("nodes", "ok", f"{len(nodes)} nodes are new enough for {proposal.new_version}")


def _budgets(budgets: list[dict[str, Any]]) -> Iterator[CheckResult]:
    """Yield a warning for every budget that allows no disruption now, else one line."""
    blocking = [
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in budgets
        if each["status"]["expectedPods"] and not each["status"]["disruptionsAllowed"]
    ]
    for name in blocking:
        message = f"{name} allows no disruption now; nodes with its pods cannot be drained"
        yield CheckResult("disruption budgets", "warning", message)
    if not blocking:
        yield CheckResult("disruption budgets", "ok", f"{len(budgets)} budgets allow disruptions")


def _too_old(what: str, version: str, proposal: Proposal) -> str:
    return (
        f"{what} runs {version}, more than {MAXIMUM_SKEW} minor versions behind {proposal.new_version}; "
        "replace it first"
    )


def _minor(version: str) -> int:
    """Return 35 of ``1.35`` or ``v1.35.4-eks-123``."""
    return version_order(version)[1]


#: Checks by name, in the order of an upgrade.
CHECKS: Checks[Proposal] = {
    "Kubernetes": version_step,
    "cluster": control_plane,
    "insights": insights,
    "add-ons": add_ons,
    "charts": charts,
    "node groups": nodegroups,
    "pools": held_pools,
    CHECK: template_changes,
    "nodes and disruption budgets": cluster_objects,
}


#: Those of a platform on ECS: the others ask EKS or Kubernetes.
ECS_CHECKS: Checks[Proposal] = {CHECK: template_changes}


def check_upgrade(proposal: Proposal) -> Iterator[CheckResult]:
    """Iterate over the results of all checks."""
    yield from run_checks(ECS_CHECKS if proposal.on_ecs else CHECKS, proposal)
