"""Templates of shipped blueprints and of variants, each synthesised once for all tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

import app
from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.shipped import shipped
from tests.templates.support import Templates

#: No assets are copied to the cloud assembly or bundled, except the code of batch, which contains the
#: configuration from the blueprint.
CONTEXT = {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": ["*-Batch"]}

BASE: Mapping[str, Any] = {
    "apiVersion": "inference-blueprints/v1alpha1",
    "kind": "Blueprint",
    "metadata": {"name": "try"},
    "spec": {
        "environment": {"region": "us-west-2"},
        "cluster": {"eks": {"version": "1.35"}},
        "pools": [{"name": "l40s", "instanceTypes": ["g6e.2xlarge"], "nodes": {"max": 4}}],
        "models": [
            {
                "name": "qwen3-8b",
                "weights": {"huggingFace": "Qwen/Qwen3-8B", "revision": "main"},
                "workload": {"inputTokens": 3000, "outputTokens": 200, "peakRequestsPerSecond": 2},
                "deployments": [
                    {"name": "main", "aggregated": {"pool": "l40s", "replicas": 2, "tensorParallelSize": 1}}
                ],
            }
        ],
    },
}

Change = Callable[[dict[str, Any]], object]
Synthesise = Callable[..., Templates]


@pytest.fixture(scope="session")
def base() -> dict[str, Any]:
    """The base document of variants. Copy it before changing it."""
    return copy.deepcopy(dict(BASE))


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Synthesise:
    """Synthesise the base document after a change of its spec. Equal documents are synthesised once."""
    done: dict[str, Templates] = {}

    def build(change: Change | None = None, *, again: bool = False) -> Templates:
        document = copy.deepcopy(dict(BASE))
        if change:
            change(document["spec"])
        text = yaml.safe_dump(document)
        if again or text not in done:
            folder = tmp_path_factory.mktemp("variant")
            (folder / "blueprint.yaml").write_text(text)
            done[text] = write_templates(folder / "blueprint.yaml", folder / "cdk.out")
        return done[text]

    return build


@pytest.fixture(scope="session")
def base_templates(synthesise: Synthesise) -> Templates:
    """Templates of the unchanged base document."""
    return synthesise()


@pytest.fixture(scope="session", params=sorted(shipped()))
def shipped_name(request: pytest.FixtureRequest) -> str:
    """Each shipped blueprint in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def shipped_templates(shipped_name: str, tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Templates of a shipped blueprint."""
    return write_templates(shipped()[shipped_name], tmp_path_factory.mktemp(shipped_name) / "cdk.out")


def write_templates(blueprint: Path, outdir: Path) -> Templates:
    """Synthesise a blueprint into a folder."""
    app.synthesise(app.build_app(load_blueprint(str(blueprint)), outdir=outdir, context=CONTEXT))
    return Templates(outdir)


@pytest.fixture
def snapshot_json(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The recorded templates of a shipped blueprint, one JSON file each."""
    return snapshot.use_extension(JSONSnapshotExtension)
