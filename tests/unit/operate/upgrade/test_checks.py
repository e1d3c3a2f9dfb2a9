"""What stands against an upgrade."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.platform_change import Held
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.upgrade import proposal, upgrade_checks
from inference_blueprints.spec.lock.lock import Lock, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text
from inference_catalog.releases import NodeImage, shipped_releases
from inference_contracts.errors import BlueprintError, UserError
from tests.unit.operate.faults import Faults, json_error
from tests.unit.operate.upgrade.conftest import FakeKubectl, MakeCluster
from tests.unit.operate.upgrade.fake_eks import insight
from tests.unit.operate.upgrade.support import proposed, result, seen


@pytest.mark.parametrize(
    ("deployed", "to", "words"),
    [
        ("1.34", "1.36", "1.34 runs, and 1.36 skips a minor version.* upgrade .*--to 1\\.35"),
        ("1.36", "1.35", "1.36 runs, and EKS cannot downgrade it"),
    ],
)
def test_kubernetes_goes_one_minor_at_a_time(
    file: Path, cluster: MakeCluster, deployed: str, to: str, words: str
) -> None:
    cluster(version=deployed)
    found = result(proposed(file, to), "Kubernetes")
    assert found.severity == "error"
    assert re.search(words, str(found))


def test_what_runs_counts_and_not_what_the_file_says(file: Path, cluster: MakeCluster) -> None:
    cluster(version="1.34")
    file.write_text(file.read_text().replace('version: "1.35"', 'version: "1.36"'))
    assert result(proposed(file), "Kubernetes").severity == "error"


def test_a_version_that_this_release_does_not_know(file: Path, cluster: MakeCluster) -> None:
    cluster()
    with pytest.raises(BlueprintError, match=r"spec\.cluster\.eks\.version: got '1\.99', versions are"):
        proposed(file, "1.99")


def test_a_cluster_that_is_being_updated(file: Path, cluster: MakeCluster) -> None:
    cluster(status="UPDATING")
    assert "is UPDATING; wait until it is ACTIVE" in result(proposed(file), "cluster").message


def test_insights_stop_or_warn_with_eks_s_own_advice(file: Path, cluster: MakeCluster) -> None:
    use = {
        "usage": "/apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas",
        "clientStats": [{"userAgent": "old-controller/v1", "numberOfRequestsLast30Days": 9}],
    }
    eks = cluster(
        insights=[
            insight("a", "PASSING"),
            insight("b", "ERROR", categorySpecificSummary={"deprecationDetails": [use]}),
            insight("c", "WARNING"),
            insight("d", "UNKNOWN"),
        ]
    )
    upgrade = proposed(file, "1.36")
    [error] = [line for line in seen(upgrade, "error") if line.startswith("insights")]
    assert error.startswith("insights: Check b: reason b; /apis/flowcontrol.apiserver.k8s.io/v1beta3/")
    assert error.endswith("is used by old-controller/v1; mend b")
    assert seen(upgrade, "warning") == ["insights: Check c: reason c; mend c"]
    assert seen(upgrade, "unknown") == ["insights: Check d: reason d; mend d"]
    assert eks.asked[0] == {"categories": ["UPGRADE_READINESS"], "kubernetesVersions": ["1.36"]}


def test_without_insights_nobody_has_looked(file: Path, cluster: MakeCluster) -> None:
    cluster()
    assert seen(proposed(file, "1.36"), "unknown") == [
        "insights: EKS has no insights for 1.36 yet; it updates them once a day"
    ]


def test_insights_are_of_no_use_where_kubernetes_stays(file: Path, cluster: MakeCluster) -> None:
    eks = cluster(insights=[insight("b", "ERROR")])
    assert seen(proposed(file), "error") == []
    assert eks.asked == []


def test_insights_that_may_not_be_read_are_unknown_and_hide_nothing(
    file: Path, cluster: MakeCluster, account: Account
) -> None:
    cluster(status="UPDATING")
    upgrade = proposed(file, "1.36")
    Faults(json_error("AccessDeniedException", "you may not")).into(account.client("eks"), "ListInsights")
    assert any("you may not" in line for line in seen(upgrade, "unknown"))
    assert any("UPDATING" in line for line in seen(upgrade, "error"))


def test_an_add_on_that_no_version_of_runs(file: Path, cluster: MakeCluster) -> None:
    cluster(add_ons={"coredns": ("v1.11.0-eksbuild.1", "ACTIVE")})
    found = result(proposed(file, "1.36"), "add-ons")
    assert (found.severity, "no version runs on 1.36" in found.message) == ("error", True)


def test_an_add_on_that_is_not_well(file: Path, cluster: MakeCluster) -> None:
    cluster(
        add_ons={"coredns": ("v1.12.0-eksbuild.2", "DEGRADED")}, supported={"coredns": ["v1.12.0-eksbuild.2"]}
    )
    found = result(proposed(file), "add-ons")
    assert (found.severity, "is DEGRADED" in found.message) == ("error", True)
    assert "--addon-name coredns" in (found.command or "")


def test_a_chart_that_needs_a_newer_kubernetes(
    file: Path, cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = shipped_releases()
    demanding = replace(own.charts["karpenter"], minimum_kubernetes="1.36")
    newer = replace(own, charts={**own.charts, "karpenter": demanding})
    monkeypatch.setattr(proposal, "shipped_releases", lambda: newer)
    cluster()
    found = result(proposed(file), "charts")
    assert found.severity == "error"
    assert "needs Kubernetes 1.36, not 1.35" in found.message
    assert (found.command or "").endswith("--to 1.36")
    assert not [line for line in seen(proposed(file, "1.36"), "error") if line.startswith("charts")]


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("1.32", "ACTIVE", "runs 1.32, more than 3 minor versions behind 1.36"),
        ("1.35", "DEGRADED", "is DEGRADED"),
    ],
)
def test_managed_nodes_that_are_too_old_or_not_well(
    file: Path, cluster: MakeCluster, version: str, status: str, message: str
) -> None:
    cluster(nodegroups={"system": (version, status)})
    found = result(proposed(file, "1.36"), "node groups")
    assert (found.severity, message in found.message) == ("error", True)


def node(name: str, version: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"nodeInfo": {"kubeletVersion": version}}}


def test_every_node_that_is_too_old_is_named(file: Path, cluster: MakeCluster, kubectl: FakeKubectl) -> None:
    cluster()
    kubectl.nodes = [node("a", "v1.32.9-eks-1"), node("b", "v1.33.0-eks-1")]
    errors = [line for line in seen(proposed(file, "1.36"), "error") if line.startswith("nodes")]
    assert [line.split()[2] for line in errors] == ["a"]
    assert not [line for line in seen(proposed(file), "error") if line.startswith("nodes")]


def test_budgets_that_let_no_pod_go_are_named(file: Path, cluster: MakeCluster, kubectl: FakeKubectl) -> None:
    cluster()

    def budget(name: str, expected: int, allowed: int) -> dict[str, Any]:
        return {
            "metadata": {"namespace": "inference", "name": name},
            "status": {"expectedPods": expected, "disruptionsAllowed": allowed},
        }

    kubectl.budgets = [budget("held", 2, 0), budget("free", 2, 1), budget("empty", 0, 0)]
    [warning] = seen(proposed(file), "warning")
    assert warning.startswith("disruption budgets: inference/held allows no disruption now")


def test_credentials_that_may_not_describe_the_cluster(
    file: Path, cluster: MakeCluster, account: Account
) -> None:
    Faults(json_error("AccessDeniedException", "you may not")).into(account.client("eks"), "DescribeCluster")
    with pytest.raises(UserError, match=r"DescribeCluster.*you may not"):
        proposed(file)


def test_an_api_server_out_of_reach_is_unknown(
    file: Path, cluster: MakeCluster, kubectl: FakeKubectl
) -> None:
    cluster()
    kubectl.failure = "dial tcp 10.0.0.7:443: i/o timeout"
    [unknown] = seen(proposed(file), "unknown")
    assert unknown.startswith("nodes and disruption budgets: could not be checked: dial tcp")


def test_credentials_of_another_account(file: Path, cluster: MakeCluster) -> None:
    cluster()
    file.write_text(file.read_text().replace("region:", 'account: "999999999999", region:'))
    with pytest.raises(UserError, match="the blueprint names 999999999999"):
        proposed(file)


def test_a_held_pool_that_would_be_too_old(file: Path, cluster: MakeCluster) -> None:
    cluster()
    held = {"l40s": NodeImage("1.32", "v1.50.0", "v20261119")}
    file.write_text(
        file.read_text().replace(
            "  models:\n", "  - {name: spare, instanceTypes: [g6e.2xlarge], nodes: {max: 1}}\n  models:\n"
        )
    )
    lock_path(file).write_text(lock_text(Lock(release="0.1.0", kubernetes="1.35", held_pools=held)))
    found = result(proposed(file, "1.36", "spare"), "pools")
    assert (found.severity, "pool l40s runs 1.32" in found.message) == ("error", True)
    assert (found.command or "").endswith("--pools l40s --apply")


def test_what_deploy_would_refuse_or_hold_is_shown_before(
    file: Path, cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The templates were not read, so an upgrade without findings stopped in CloudFormation."""
    cluster()
    file.with_name("models").mkdir()
    texts: list[str] = []

    def write(name: str, _folder: Path) -> None:
        texts.append(Path(name).read_text() + lock_path(Path(name)).read_text())
        assert Path(name).with_name("models").is_dir(), "what is next to the blueprint counts too"

    found = [CheckResult("c", "error", "is refused"), Held("c", "a-Data", "waits", lambda _: None)]
    monkeypatch.setattr(upgrade_checks, "synthesise", write)
    monkeypatch.setattr(upgrade_checks, "check_change", lambda _: found)
    upgrade = proposed(file, "1.36")
    assert "c: is refused" in seen(upgrade, "error")
    assert "templates: held by deploy: a-Data: waits" in seen(upgrade, "warning")
    assert {text.count('"1.36"') for text in texts} == {2}, "in the blueprint and in its lock"
