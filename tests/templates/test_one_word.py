"""Every shipped blueprint with `eks` replaced by `ecs` synthesises, and its templates have no findings."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from inference_blueprints.resources import blueprints_directory
from tests.templates.checks.lint import lint
from tests.templates.synthesis import write_templates
from tests.unit.render.ecs.one_word import REFUSED, on_ecs

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("name", [name for name, limits in REFUSED.items() if not limits])
def test_a_blueprint_with_one_word_changed_has_templates_without_findings(name: str, tmp_path: Path) -> None:
    """Findings of cdk-nag fail the synthesis itself."""
    file = tmp_path / "blueprint.yaml"
    (tmp_path / "rates").symlink_to(blueprints_directory() / "rates")
    text = on_ecs(name)
    file.write_text(text, encoding="utf-8")
    templates = write_templates(file, tmp_path / "cdk.out")
    assert templates.resources("AWS::ECS::Service")
    assert not templates.resources("AWS::EKS::Cluster")
    assert lint(templates, yaml.safe_load(text)["spec"]["environment"]["region"]) == []
