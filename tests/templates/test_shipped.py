"""Templates of shipped blueprints are what CloudFormation takes.

With the blueprints of `shipped_name` that have `pytest.mark.thorough`, they belong to that suite.
"""

from __future__ import annotations

import json

from tests.cluster.objects import manifests, releases
from tests.templates.checks.exports import exports, too_early
from tests.templates.checks.limits import exceeded_limits
from tests.templates.checks.lint import lint
from tests.templates.checks.refused import refused_by_aws
from tests.templates.support import Templates


def test_they_have_no_findings(shipped_templates: Templates) -> None:
    # cdk-nag's findings fail the synthesis itself.
    assert lint(shipped_templates, "us-west-2") == []


def test_they_are_within_limits(shipped_templates: Templates) -> None:
    assert exceeded_limits(shipped_templates) == []


def test_no_row_of_the_table_refuses_a_resource(shipped_templates: Templates) -> None:
    """Red if a blueprint becomes a template that AWS refuses, and the table of refusals says so."""
    assert refused_by_aws(shipped_templates) == []


def test_stacks_export_nothing_and_read_outputs_of_earlier_stacks(shipped_templates: Templates) -> None:
    assert exports(shipped_templates) == []
    assert too_early(shipped_templates) == []


def test_asks_no_account_anything(shipped_templates: Templates) -> None:
    manifest = json.loads((shipped_templates.directory / "manifest.json").read_text())
    assert "missing" not in manifest


def test_the_cluster_s_tests_can_name_each_resource_that_kubernetes_is_told_of(
    shipped_templates: Templates,
) -> None:
    """Red if a manifest or a value of a chart refers to a type that `make test-cluster` does not know."""
    manifests(shipped_templates)
    releases(shipped_templates)
