"""Kinds of objects that a controller and a deployment both write."""

from __future__ import annotations

import re

from inference_catalog.charts import charts_directory
from tests.templates.conftest import SynthesiseShipped

_WRITES = {"patch", "update", "*"}


def test_controllers_and_deployments_write_only_two_kinds_both(synthesise_shipped: SynthesiseShipped) -> None:
    """Red if a controller may change a further kind that a chart or a stack writes, too.

    Then say in docs/life-cycle.md who owns which field, and show in tests/cluster/test_owned_fields.py that a
    deployment over a changed field succeeds and keeps what the controller needs.
    """
    templates = synthesise_shipped("capacity-and-health")
    changed = {
        resource
        for role in templates.manifests("Operations")
        if role["kind"] in ("ClusterRole", "Role")
        for rule in role["rules"]
        if _WRITES & set(rule["verbs"])
        for resource in rule["resources"]
    }
    kinds = {each["kind"] for stack in templates.by_stack for each in templates.manifests(stack)}
    for template in charts_directory().glob("*/templates/*"):
        kinds |= set(re.findall(r"^kind: (\w+)", template.read_text("utf-8"), re.MULTILINE))
    assert changed & {f"{kind.lower()}s" for kind in kinds} == {"scaledobjects", "clusterqueues"}
