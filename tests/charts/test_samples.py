"""What the charts render for the samples is valid. ``make verify`` compares it with ``rendered/``."""

from __future__ import annotations

import pytest

from inference_local.manifests import validate_manifest
from tests.charts.renderings import KUBERNETES_VERSION, Render
from tests.charts.samples import SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_every_object_is_valid_and_of_a_known_kind(name: str, render: Render) -> None:
    for manifest in render(*SAMPLES[name]):
        assert validate_manifest(manifest, KUBERNETES_VERSION) == []
        if manifest["kind"] == "DynamoGraphDeployment":
            for component in manifest["spec"]["components"]:
                pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": component["name"]}}
                pod["template"] = component["podTemplate"]
                assert validate_manifest(pod, KUBERNETES_VERSION) == []
