"""A new release of the library: with a lock the templates stay, without one they follow."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from import_graph import python_path

from inference_blueprints.resources import root
from inference_blueprints.spec.lock.lock import Lock, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text
from inference_blueprints.spec.source import shipped
from inference_catalog.releases import ADD_ONS, NodeImage
from inference_constructs.eks.cluster_add_ons import SECRETS
from tests.templates.synthesis import write_templates

ROOMS = (
    *("inference_blueprints", "stacks", "constructs", "contracts", "catalog", "blueprints", "helm_values"),
    *("charts", "runtime"),
)


@pytest.fixture(scope="module")
def new_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the library that runs newer charts, a newer engine and newer nodes, and reads older locks."""
    house = tmp_path_factory.mktemp("release")
    for room in ROOMS:
        shutil.copytree(root() / room, house / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("app.py", "cdk.json"):
        shutil.copy(root() / file, house / file)
    data = house / "catalog/inference_catalog/data"
    charts = house / "helm_values/charts.yaml"
    karpenter = "karpenter/karpenter\n  version: 1.15.1\n  oldest: 1.14.1\n"
    newer = "karpenter/karpenter\n  version: 1.16.0\n  oldest: 1.14.0\n"
    charts.write_text(replaced(charts.read_text(), karpenter, newer))
    nodes = data / "nodes.json"
    document = json.loads(nodes.read_text())
    document["bottlerocket"]["version"], document["al2023"]["version"] = "v1.99.0", "v20991231"
    nodes.write_text(json.dumps(document))
    (data / "engines/vllm").mkdir(exist_ok=True)
    engine = json.loads((data / "engines/vllm.json").read_text())
    shutil.copy(data / "engines/vllm.json", data / f"engines/vllm/{engine['version']}.json")
    (data / "engines/vllm.json").write_text(json.dumps({**engine, "version": "1.99.0"}))
    return house


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def synthesised(house: Path, blueprint: Path, outdir: Path) -> dict[str, Any]:
    """Run a library's own app and return its templates by file name."""
    environment = {**os.environ, "BLUEPRINT": str(blueprint), "CDK_OUTDIR": str(outdir)}
    environment["PYTHONPATH"] = python_path(house)
    # Templates are only compared here: CDK's validation would take 7 s per process.
    environment["CDK_VALIDATION"] = "false"
    command = [sys.executable, str(house / "app.py")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return {file.name: json.loads(file.read_text()) for file in outdir.glob("*.template.json")}


def command(house: Path, *words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": python_path(house)}
    main = [sys.executable, "-m", "inference_blueprints.cli.main", *words]
    ran = subprocess.run(main, env=environment, cwd=house, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_what_a_lock_holds_is_in_the_templates(base: dict[str, Any], tmp_path: Path) -> None:
    base = copy.deepcopy(base)
    mine = tmp_path / "mine.yaml"
    spare = {"name": "spare", "instanceTypes": ["g6e.2xlarge"], "nodes": {"max": 1}}
    base["spec"]["pools"] = [*base["spec"]["pools"], spare]
    mine.write_text(yaml.safe_dump(base))
    held = {"spare": NodeImage("1.34", "v1.50.0", "v20261119")}
    add_ons = {"coredns": "v1.12.0-eksbuild.2"}
    lock_path(mine).write_text(lock_text(Lock(release="0.1.0", add_ons=add_ons, held_pools=held)))
    templates = write_templates(mine, tmp_path / "cdk.out")
    versions = {
        each["AddonName"]: each.get("AddonVersion") for each in templates.properties("AWS::EKS::Addon")
    }
    assert versions == {name: add_ons.get(name) for name in versions}
    assert versions.keys() <= set(ADD_ONS)
    assert set(ADD_ONS) - versions.keys() == {SECRETS.name, "amazon-cloudwatch-observability"}
    manifests = json.dumps(templates.by_stack["Capacity"])
    assert manifests.count("/aws-k8s-1.34-nvidia/x86_64/1.50.0/image_id") == 1
    assert manifests.count("/aws-k8s-1.35-nvidia/x86_64/") == 1


@pytest.mark.thorough
def test_a_new_release_changes_nothing_that_a_lock_holds(new_release: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(shipped()["quickstart-g6e"].read_text())
    command(root(), "lock", str(mine))
    before = synthesised(root(), mine, tmp_path / "before")
    assert before
    assert synthesised(new_release, mine, tmp_path / "locked") == before

    (tmp_path / "mine.lock.yaml").unlink()
    after = synthesised(new_release, mine, tmp_path / "after")
    changed = {
        name.removeprefix("quickstart-").split(".")[0] for name in after if after[name] != before[name]
    }
    assert changed == {"Capacity", "Platform", "Model-qwen3-8b"}
    text = json.dumps(after)
    assert all(
        version in text for version in ('"1.16.0"', "-nvidia/x86_64/1.99.0/image_id", "vllm-runtime:1.99.0")
    )
