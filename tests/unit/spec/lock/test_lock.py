"""The lock file: what it says is what runs, and every mistake in it is shown with its place."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import LoadedBlueprint, load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.lock import lock as locks
from inference_blueprints.spec.lock.lock import Change, Lock, Pin, differences, lock_of, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text, parse_lock
from inference_catalog import Catalogue
from inference_catalog.catalogue import shipped
from inference_catalog.releases import ADD_ONS, NodeImage, shipped_releases, version_order
from inference_contracts.errors import BlueprintError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "sha256:" + "ab" * 32
FULL = Lock(
    release="0.1.0",
    kubernetes="1.35",
    bottlerocket="v1.50.0",
    al2023="v20261119",
    add_ons={"coredns": "v1.12.4-eksbuild.1"},
    charts={"karpenter": Pin("1.14.1", DIGEST)},
    engines={"vllm": Pin("1.6.1", DIGEST)},
    models={"Qwen/Qwen3-8B@main": COMMIT},
    held_pools={"l40s": NodeImage("1.34", "v1.47.0", "v20261119")},
    identity="0123456789abcdef" * 2,
)


@pytest.fixture
def blueprint(tmp_path: Path) -> Path:
    """A blueprint of a user's own, with a model that names no revision."""
    document = yaml.safe_load((Path(__file__).parent.parent / "base.yaml").read_text())
    weights = document["spec"]["models"][0]["weights"]
    weights.clear()
    weights["huggingFace"] = "Qwen/Qwen3-8B"
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def locked(blueprint: Path, lock: Lock) -> LoadedBlueprint:
    lock_path(blueprint).write_text(lock_text(lock))
    return load_blueprint(str(blueprint))


def problems(blueprint: Path, text: str) -> list[str]:
    """Return what is wrong with a lock, without its file."""
    file = lock_path(blueprint)
    file.write_text(text)
    with pytest.raises(BlueprintError) as caught:
        load_blueprint(str(blueprint))
    return [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems]


def test_what_is_written_is_read() -> None:
    assert parse_lock(lock_text(FULL), "a.lock.yaml").lock == FULL


def test_what_the_lock_holds_is_what_runs(blueprint: Path) -> None:
    loaded = locked(blueprint, FULL)
    releases = loaded.blueprint.releases
    assert releases.bottlerocket == "v1.50.0"
    assert releases.held_pools == {"l40s": NodeImage("1.34", "v1.47.0", "v20261119")}
    assert releases.add_ons["coredns"] == "v1.12.4-eksbuild.1"
    assert (releases.charts["karpenter"].version, releases.charts["karpenter"].digest) == ("1.14.1", DIGEST)
    model, *_ = build_plan(loaded.blueprint).models
    images = {process.image for process in model.deployments[0].processes if process.role == "worker"}
    assert {image.partition("@")[2] for image in images} == {DIGEST}
    assert loaded.blueprint.spec.models[0].weights.revision == COMMIT
    assert loaded.written.spec.models[0].weights.revision is None


def test_what_the_lock_does_not_hold_is_this_release_s(blueprint: Path) -> None:
    releases = locked(blueprint, Lock(release="0.1.0")).blueprint.releases
    assert releases == shipped_releases()
    assert set(releases.add_ons) == set(ADD_ONS)


def test_a_held_pool_of_an_earlier_lock_gets_the_al2023_of_the_lock(blueprint: Path) -> None:
    text = lock_text(FULL).replace(', al2023: "v20261119"', "")
    assert parse_lock(text, "a.lock.yaml").lock == FULL
    before = text.replace('  al2023: "v20261119"\n', "")
    lock = parse_lock(before, "a.lock.yaml").lock
    assert (lock.al2023, lock.held_pools["l40s"].al2023) == (None, shipped_releases().al2023)
    problem, *_ = problems(blueprint, text.replace("v20261119", "v20260101"))
    assert "nodes.al2023: got 'v20260101', this release supports 'v20261119'" in problem


def test_a_commit_holds_only_for_what_was_asked(blueprint: Path) -> None:
    document = yaml.safe_load(blueprint.read_text())
    document["spec"]["models"][0]["weights"]["revision"] = "other-branch"
    blueprint.write_text(yaml.safe_dump(document))
    assert locked(blueprint, FULL).blueprint.spec.models[0].weights.revision == "other-branch"


def test_another_kubernetes_than_the_lock_s_is_an_error_of_the_blueprint(blueprint: Path) -> None:
    lock_path(blueprint).write_text(lock_text(replace(FULL, kubernetes="1.34")))
    with pytest.raises(BlueprintError) as caught:
        load_blueprint(str(blueprint))
    [problem] = caught.value.problems
    assert (problem.file, problem.path) == (str(blueprint), "spec.cluster.eks.version")
    assert "lock has '1.34'" in problem.message
    assert f"blueprints upgrade {blueprint}" in problem.message


def test_every_mistake_of_form_is_shown_at_once(blueprint: Path) -> None:
    text = """\
apiVersion: inference-blueprints/v1alpha1
kind: Lock
release: "0.1.0"
kubernetes: 1.35
nodes: {botlerocket: v1.66.0}
addOns: [coredns]
charts:
  karpenter: {version: newest, digest: sha256:12}
  karpenter-crd: {digest: "sha256:12"}
engines:
  vllm: 5
heldPools: {l40s: {kubernetes: "1"}}
models:
  Qwen/Qwen3-8B@main: main
colour: red
"""
    assert problems(blueprint, text) == [
        '4:13: kubernetes: got 1.35, expected a Kubernetes version in quotes such as "1.35"',
        "5:9: nodes.botlerocket: is an unknown key, keys are 'bottlerocket', 'al2023'; "
        "did you mean 'bottlerocket'?",
        "6:1: addOns: got a list, expected a mapping",
        "8:24: charts.karpenter.version: got 'newest', expected a version such as v1.66.0",
        "8:40: charts.karpenter.digest: got 'sha256:12', "
        "expected a digest, sha256: and 64 hexadecimal digits",
        "9:3: charts.karpenter-crd.version: is missing: a version such as v1.66.0",
        "9:27: charts.karpenter-crd.digest: got 'sha256:12', "
        "expected a digest, sha256: and 64 hexadecimal digits",
        "11:9: engines.vllm: got 5, expected a mapping",
        "11:9: engines.vllm.version: is missing: a version such as v1.66.0",
        "12:13: heldPools.l40s.bottlerocket: is missing: a version such as v1.66.0",
        "12:32: heldPools.l40s.kubernetes: got '1', expected a Kubernetes version in quotes such as \"1.35\"",
        "14:23: models['Qwen/Qwen3-8B@main']: got 'main', expected a commit, 40 hexadecimal digits",
        "15:1: colour: is an unknown key, keys are 'apiVersion', 'kind', 'release', 'identity', "
        "'kubernetes', 'nodes', 'addOns', 'charts', 'engines', 'heldPools', 'models'",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("a: [\nb: c", "the bracket [ opens here"),
        ("- a", "a lock is a mapping"),
        (
            "kind: Lock\napiVersion: inference-blueprints/v9\nrelease: '9.0'\n",
            "got 'inference-blueprints/v9'",
        ),
        ("kind: Blueprint\napiVersion: inference-blueprints/v1alpha1\n", "release: is missing"),
    ],
)
def test_what_is_no_lock_at_all(blueprint: Path, text: str, problem: str) -> None:
    assert any(problem in line for line in problems(blueprint, text))


def test_mistakes_of_blueprint_and_lock_are_shown_together(blueprint: Path) -> None:
    blueprint.write_text(blueprint.read_text().replace("Qwen/Qwen3-8B", "Qwen/Qwen3-9B"))
    lock_path(blueprint).write_text("kind: Lock\n")
    with pytest.raises(BlueprintError) as caught:
        load_blueprint(str(blueprint))
    assert {problem.file for problem in caught.value.problems} == {str(blueprint), str(lock_path(blueprint))}


def test_what_this_release_cannot_run_is_shown_at_once_with_what_to_do(blueprint: Path) -> None:
    lock = replace(
        FULL,
        release="0.9.0",
        bottlerocket="v1.40.0",
        al2023="v20260102",
        held_pools={"l40s": NodeImage("1.34", "v1.41.0", "v20260101")},
        add_ons={"cordns": "v1"},
        charts={"karpenter": Pin("0.9.0"), "karpentr": Pin("1.0.0")},
        engines={"vllm": Pin("9.9.9"), "vlm": Pin("1.0")},
    )
    found = problems(blueprint, lock_text(lock))
    starts = [line.split("; ")[0].split(": ", 1)[1] for line in found]
    assert [line.partition(",")[0] for line in starts] == [
        "nodes.bottlerocket: got 'v1.40.0'",
        "nodes.al2023: got 'v20260102'",
        "addOns.cordns: is unknown",
        "charts.karpenter.version: got '0.9.0'",
        "charts.karpentr: is unknown",
        "engines.vllm.version: got '9.9.9'",
        "engines.vlm: is unknown",
        "heldPools.l40s.bottlerocket: got 'v1.41.0'",
        "heldPools.l40s.al2023: got 'v20260101'",
    ]
    remedy = f"run `blueprints upgrade {blueprint}` to pin other versions, or use release 0.9.0"
    assert all(remedy in line for line in found)


def test_an_older_chart_runs_where_the_values_still_fit(
    blueprint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = shipped_releases()
    karpenter = replace(own.charts["karpenter"], oldest="1.13.0", digest=DIGEST)
    newer = replace(own, charts={**own.charts, "karpenter": karpenter})
    monkeypatch.setattr(locks, "shipped_releases", lambda: newer)
    older = replace(FULL, charts={"karpenter": Pin("1.13.2")})
    chart = locked(blueprint, older).blueprint.releases.charts["karpenter"]
    # The digest that is known is another version's.
    assert (chart.version, chart.digest) == ("1.13.2", None)
    assert (
        "charts.karpenter.version"
        in problems(blueprint, lock_text(replace(FULL, charts={"karpenter": Pin("1.12.9")})))[0]
    )


def test_a_former_engine_runs_with_its_own_flags(
    blueprint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = json.loads((shipped().directory / "engines/vllm.json").read_text())
    former: dict[str, Any] = copy.deepcopy(flags)
    former["version"] = "1.5.0"
    del former["flags"]["--async-scheduling"]
    data = tmp_path / "catalogue"
    newer = Catalogue(data)
    (data / "engines/vllm").mkdir(parents=True)
    (data / "engines/vllm.json").write_text(json.dumps(flags))
    (data / "engines/vllm/1.5.0.json").write_text(json.dumps(former))
    for name in ("nodes.json", "argument_reasons.json"):
        (data / name).write_text((shipped().directory / name).read_text())
    monkeypatch.setattr(locks, "shipped", lambda: newer)

    lock = replace(FULL, engines={"vllm": Pin("1.5.0")})
    model, *_ = build_plan(locked(blueprint, lock).blueprint).models
    assert {process.image.rsplit(":")[-1] for process in model.deployments[0].processes} == {"1.5.0"}

    document = yaml.safe_load(blueprint.read_text())
    document["spec"]["models"][0]["engine"] = {"vllm": {"args": {"async-scheduling": True}}}
    blueprint.write_text(yaml.safe_dump(document))
    with pytest.raises(BlueprintError, match=r"async-scheduling.*is not an argument"):
        load_blueprint(str(blueprint))


def test_a_lock_pins_no_release_without_dynamo(blueprint: Path) -> None:
    lock = replace(FULL, engines={"vllm": Pin("0.33.0")})
    with pytest.raises(BlueprintError, match=r"engines\.vllm.version: got '0.33.0', .* supports '1.6.1'"):
        locked(blueprint, lock)


def test_the_lock_of_a_blueprint_names_what_it_uses(blueprint: Path) -> None:
    loaded = load_blueprint(str(blueprint))
    known = {"Qwen/Qwen3-8B@main": COMMIT, "other/model@main": COMMIT}
    lock = lock_of(loaded.written, loaded.blueprint.releases, known)
    assert lock.kubernetes == "1.35"
    assert lock.models == {"Qwen/Qwen3-8B@main": COMMIT}
    assert lock.engines.keys() == {"vllm"}
    assert lock.charts.keys() == {
        chart.name for chart in shipped_releases().charts.values() if chart.repository
    }
    assert differences(loaded.lock, lock)[0] == Change("Kubernetes", None, "1.35")
    assert differences(lock, lock) == []


def test_differences_name_what_comes_goes_and_changes() -> None:
    new = replace(FULL, charts={"karpenter": Pin("1.15.0")}, models={})
    assert differences(FULL, new) == [
        Change("chart karpenter", "1.14.1", "1.15.0"),
        Change("chart karpenter, digest", DIGEST, None),
        Change("model Qwen/Qwen3-8B@main", COMMIT, None),
    ]


def test_versions_are_ordered_by_their_numbers() -> None:
    versions = ["v1.9.0", "v1.10.0-eksbuild.1", "v1.10.0-eksbuild.12", "v1.10.1-eksbuild.1"]
    assert sorted(set(versions), key=version_order) == versions
