"""Manifests are checked as strictly as an API server checks them."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference_contracts.errors import UserError
from inference_local import manifests
from inference_local.manifests import validate_manifest

GOOD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}


@pytest.fixture
def widget_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    properties: dict[str, Any] = {"apiVersion": {}, "kind": {}, "metadata": {}}
    properties["spec"] = {"properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    (tmp_path / "apps.example.com_v1_Widget.json").write_text(json.dumps(schema))
    (tmp_path / "apps.example.com_v1_Deployment.json").write_text(json.dumps(schema))
    monkeypatch.setattr(manifests, "SCHEMA_DIRECTORY", tmp_path)
    manifests._custom_schema.cache_clear()


def test_a_valid_object_has_no_problems() -> None:
    assert validate_manifest(GOOD, "1.35") == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dataa": {}}, "ConfigMap a: $: Additional properties are not allowed ('dataa' was unexpected)"),
        ({"data": {"k": 1}}, "ConfigMap a: $.data.k: 1 is not of type 'string', 'null'"),
        ({"kind": "ConfigMapp"}, "no schema for kind ConfigMapp of v1"),
        ({"apiVersion": "karpenter.example/v1"}, "no schema for kind ConfigMap of karpenter.example/v1"),
        ({"kind": ""}, "object without kind"),
        ({"metadata": None}, "object without metadata"),
    ],
)
def test_a_broken_object_is_told_with_its_place(change: dict[str, Any], expected: str) -> None:
    (problem,) = validate_manifest({**GOOD, **change}, "1.35")
    assert expected in problem


@pytest.mark.usefixtures("widget_schema")
def test_a_custom_kind_is_checked_against_its_own_schema() -> None:
    widget = {"apiVersion": "apps.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert validate_manifest({**widget, "spec": {"size": 1}}, "1.35") == []
    problems = validate_manifest({**widget, "spec": {"size": "big"}, "sizes": 1}, "1.35")
    assert sorted(problems) == [
        "Widget w: $.spec.size: 'big' is not of type 'integer'",
        "Widget w: $: Additional properties are not allowed ('sizes' was unexpected)",
    ]


@pytest.mark.usefixtures("widget_schema")
def test_a_custom_group_is_not_mistaken_for_a_built_in_one() -> None:
    """kubernetes-validate alone takes `Deployment` of `apps.example.com` for the one of `apps`."""
    custom = {"apiVersion": "apps.example.com/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    assert validate_manifest(custom, "1.35") == []


def test_a_kubernetes_version_without_schemas_is_named() -> None:
    with pytest.raises(UserError, match=r"no schemas for Kubernetes 1\.99; known versions are 1\.25"):
        validate_manifest(GOOD, "1.99")
