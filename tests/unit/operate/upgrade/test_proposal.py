"""What an upgrade changes, and what it writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.upgrade import proposal
from inference_blueprints.operate.upgrade.upgrade_checks import steps
from inference_blueprints.operate.versions import keep_lock
from inference_blueprints.spec.lock.lock import Change, Lock, Pin, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text, write_text
from inference_blueprints.spec.source import shipped
from inference_catalog.releases import NodeImage, shipped_releases
from inference_contracts.errors import BlueprintError, UserError
from tests.unit.operate.upgrade.conftest import MakeCluster
from tests.unit.operate.upgrade.fake_eks import insight
from tests.unit.operate.upgrade.support import proposed, result, seen

DIGEST = "sha256:" + "cd" * 32


def test_one_minor_with_its_add_ons_in_the_order_of_the_deployment(file: Path, cluster: MakeCluster) -> None:
    cluster(
        add_ons={"coredns": ("v1.11.0-eksbuild.1", "ACTIVE"), "kube-proxy": ("v1.35.0-eksbuild.1", "ACTIVE")},
        nodegroups={"system": ("1.35", "ACTIVE")},
        supported={"coredns": ["v1.12.0-eksbuild.2"], "kube-proxy": ["v1.36.0-eksbuild.1"]},
        insights=[insight("a", "PASSING")],
    )
    keep_lock(load_blueprint(str(file)), file)
    upgrade = proposed(file, "1.36")
    assert upgrade.changes == [
        Change("Kubernetes", "1.35", "1.36"),
        Change("add-on coredns", "v1.11.0-eksbuild.1", "v1.12.0-eksbuild.2"),
        Change("add-on kube-proxy", "v1.35.0-eksbuild.1", "v1.36.0-eksbuild.1"),
    ]
    assert [step.partition(":")[0] for step in steps(upgrade)] == [
        "control plane",
        "EKS add-ons",
        "system nodes",
        "nodes of l40s",
    ]
    assert seen(upgrade, "error") == []


def test_a_new_release_of_the_library_changes_what_the_lock_holds(file: Path, cluster: MakeCluster) -> None:
    cluster(
        add_ons={"coredns": ("v1.12.0-eksbuild.2", "ACTIVE")}, supported={"coredns": ["v1.12.0-eksbuild.2"]}
    )
    former = Lock(
        release="0.0.1",
        kubernetes="1.35",
        bottlerocket="v1.50.0",
        # This release runs neither: upgrading is what mends that.
        charts={
            "karpenter": Pin("0.9.0", DIGEST),
            "karpenter-crd": Pin(shipped_releases().charts["karpenter-crd"].version, DIGEST),
            "gone": Pin("1.0"),
        },
        engines={"vllm": Pin("1.0.0")},
    )
    lock_path(file).write_text(lock_text(former))
    with pytest.raises(BlueprintError):
        load_blueprint(str(file))
    upgrade = proposed(file)
    own = shipped_releases()
    changes = {change.part: (change.old, change.new) for change in upgrade.changes}
    assert changes["Bottlerocket"] == ("v1.50.0", own.bottlerocket)
    assert changes["chart karpenter"] == ("0.9.0", own.charts["karpenter"].version)
    assert changes["chart karpenter, digest"] == (DIGEST, None)
    assert changes["chart gone"] == ("1.0", None)
    assert changes["engine vllm"] == ("1.0.0", own.engines["vllm"].version)
    # The version stays, and so does its recorded digest.
    assert "chart karpenter-crd, digest" not in changes
    assert [step.partition(":")[0] for step in steps(upgrade)] == [
        "controllers, in this order",
        "nodes of l40s",
        "models",
    ]
    upgrade.write()
    loaded = load_blueprint(str(file))
    assert loaded.blueprint.releases.bottlerocket == own.bottlerocket
    assert proposed(file).changes == []


def test_an_add_on_that_is_newer_than_eks_s_default_stays(file: Path, cluster: MakeCluster) -> None:
    cluster(
        add_ons={"coredns": ("v1.12.0-eksbuild.3", "ACTIVE")},
        supported={"coredns": ["v1.12.0-eksbuild.2", "v1.12.0-eksbuild.3"]},
    )
    assert proposed(file).add_ons == {"coredns": "v1.12.0-eksbuild.3"}


def test_others_add_ons_are_left_alone(file: Path, cluster: MakeCluster) -> None:
    cluster(add_ons={"amazon-cloudwatch-observability": ("v1.0.0", "DEGRADED")})
    upgrade = proposed(file)
    assert upgrade.add_ons == {}
    assert seen(upgrade, "error") == []


def test_what_was_never_deployed_is_checked_without_a_cluster(file: Path, cluster: MakeCluster) -> None:
    cluster(version=None)
    upgrade = proposed(file, "1.36")
    assert (upgrade.old_version, upgrade.new_version) == ("1.35", "1.36")
    assert "is not deployed" in result(upgrade, "cluster").message
    assert seen(upgrade, "error") + seen(upgrade, "unknown") == []


def test_blueprint_and_lock_are_written_and_the_rest_of_the_text_stays(
    file: Path, cluster: MakeCluster
) -> None:
    cluster()
    before = file.read_text()
    upgrade = proposed(file, "1.36")
    assert file.read_text() == before
    upgrade.write()
    assert file.read_text() == before.replace('"1.35"', '"1.36"')
    assert load_blueprint(str(file)).lock == upgrade.new


class Killed(BaseException):
    """The end of a process by kill -9: nothing catches it."""


def test_an_upgrade_that_was_killed_between_its_files_completes_when_it_is_run_again(
    file: Path, cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It turns red if a blueprint with its new version beside its old lock is refused, or stays so."""
    cluster()
    keep_lock(load_blueprint(str(file)), file)
    written: list[Path] = []

    def killed(path: Path, text: str) -> None:
        if written:
            raise Killed
        written.append(path)
        write_text(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(proposal, "write_text", killed)
        upgrade = proposed(file, "1.36")
        with pytest.raises(Killed):
            upgrade.write()
    assert written == [file]
    again = proposed(file, "1.36")
    assert seen(again, "error") == []
    again.write()
    loaded = load_blueprint(str(file))
    assert (loaded.lock, '"1.36"' in file.read_text()) == (again.new, True)


@pytest.mark.parametrize(("mark", "ending"), [("\ufeff", "\r\n"), ("", "\r"), ("\ufeff", "\n")])
def test_what_editors_of_other_systems_left_stays(
    file: Path, cluster: MakeCluster, mark: str, ending: str
) -> None:
    cluster()
    text = mark + file.read_text().replace('{version: "1.35"}}', "{version: '1.35'}}  # ours").replace(
        "\n", ending
    )
    file.write_bytes(text.encode())
    proposed(file, "1.36").write()
    assert file.read_bytes().decode() == text.replace("'1.35'", "'1.36'")


def test_a_version_that_does_not_stand_at_its_place(file: Path, cluster: MakeCluster) -> None:
    cluster()
    text = file.read_text().replace('version: "1.35"', 'version: &version "1.35"')
    file.write_text(text)
    with pytest.raises(UserError, match=r":8:28: spec\.cluster\.eks\.version: .*write '1\.36' yourself"):
        proposed(file, "1.36")
    assert file.read_text() == text


def test_a_link_stays_a_link(file: Path, cluster: MakeCluster, tmp_path: Path) -> None:
    cluster()
    link = tmp_path / "linked.yaml"
    link.symlink_to(file)
    proposed(link, "1.36").write()
    assert link.is_symlink()
    assert '"1.36"' in file.read_text()


# Pools one after the other


def with_two_pools(file: Path) -> None:
    pool = "  - {name: l40s, instanceTypes: [g6e.2xlarge], nodes: {max: 2}}\n"
    text = file.read_text()
    assert pool in text
    file.write_text(text.replace(pool, pool + pool.replace("name: l40s", "name: spare")))


def test_pools_that_are_not_named_stay_until_they_are(file: Path, cluster: MakeCluster) -> None:
    eks = cluster()
    with_two_pools(file)
    keep_lock(load_blueprint(str(file)), file)
    own = shipped_releases()
    first = proposed(file, "1.36", "l40s")
    assert first.new.held_pools == {"spare": NodeImage("1.35", own.bottlerocket, own.al2023)}
    assert [step.partition(":")[0] for step in steps(first)][-2:] == ["nodes of l40s", "held"]
    first.write()
    # What is locked and deployed in between leaves it as it is.
    eks.version = "1.36"
    assert keep_lock(load_blueprint(str(file)), file) == []
    assert load_blueprint(str(file)).blueprint.releases.held_pools == first.new.held_pools

    second = proposed(file, None, "spare")
    assert second.changes == [Change("held pool spare", f"1.35, {own.bottlerocket}, {own.al2023}", None)]
    assert [step.partition(":")[0] for step in steps(second)] == ["nodes of spare"]
    second.write()
    assert proposed(file).changes == []


def test_without_pools_named_all_follow(file: Path, cluster: MakeCluster) -> None:
    cluster()
    with_two_pools(file)
    held = {"spare": NodeImage("1.34", "v1.50.0", "v20261119")}
    lock_path(file).write_text(lock_text(Lock(release="0.1.0", kubernetes="1.35", held_pools=held)))
    upgrade = proposed(file)
    assert upgrade.new.held_pools == {}
    assert [step.partition(":")[0] for step in steps(upgrade)] == ["nodes of spare"]


@pytest.mark.parametrize(
    ("system", "part", "following"), [("al2023", "AL2023", "h200"), ("bottlerocket", "Bottlerocket", "spare")]
)
def test_a_newer_operating_system_replaces_the_nodes_that_boot_it(
    file: Path, cluster: MakeCluster, system: str, part: str, following: str
) -> None:
    cluster()
    text = shipped()["p5en-disaggregated"].read_text()
    spare = "  - {name: spare, instanceTypes: [g6e.2xlarge], nodes: {max: 2}}\n"
    file.write_text(text.replace("  pools:\n", f"  pools:\n{spare}"))
    keep_lock(load_blueprint(str(file)), file)
    lock = load_blueprint(str(file)).lock
    assert lock is not None
    lock_path(file).write_text(lock_text(replace(lock, **cast("Any", {system: "v1.47.0"}))))
    upgrade = proposed(file)
    assert [change.part for change in upgrade.changes] == [part]
    assert [step.partition(":")[0] for step in steps(upgrade)] == [f"nodes of {following}"]


def test_a_pool_that_there_is_not(file: Path, cluster: MakeCluster) -> None:
    cluster()
    with pytest.raises(UserError, match="--pools: got 'h200', the only pool is 'l40s'"):
        proposed(file, None, "h200")
