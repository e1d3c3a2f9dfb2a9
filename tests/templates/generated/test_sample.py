"""Every check of templates, on a sample of valid blueprints that nobody wrote.

The samples are the same in every run. ``TEMPLATE_EXAMPLES`` is the size of the larger one, of which
``make check-templates`` takes more.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.front_door.ways import key_owners
from inference_blueprints.serving.plan import build_plan
from inference_catalog import image_cache
from tests.templates.checks.exports import exports, too_early
from tests.templates.checks.limits import exceeded_limits
from tests.templates.checks.lint import lint
from tests.templates.checks.refused import refused_by_aws
from tests.templates.checks.wildcards import unexplained_wildcards
from tests.templates.strategies import Document, blueprints
from tests.templates.synthesis import write_templates

EXAMPLES = int(os.environ.get("TEMPLATE_EXAMPLES", "8"))
#: Enough for the first tier to see a mistake that most draws have.
FEW = 2

_DRAWN = settings(
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # to make a failing draw smaller would take minutes
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@settings(_DRAWN, max_examples=FEW)
@given(document=blueprints())
def test_a_few_valid_blueprints_become_sound_templates(
    document: Document, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(document, tmp_path_factory.mktemp("generated"))


@pytest.mark.thorough
@pytest.mark.timeout(0)  # the number of examples bounds it
@settings(_DRAWN, max_examples=EXAMPLES)
@given(document=blueprints())
def test_a_valid_blueprint_becomes_sound_templates(
    document: Document, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(document, tmp_path_factory.mktemp("generated"))


def check(document: Document, folder: Path) -> None:
    """Check the templates of a blueprint."""
    blueprint = folder / "blueprint.yaml"
    blueprint.write_text(yaml.safe_dump(document))
    loaded = load_blueprint(str(blueprint))
    plan = build_plan(loaded.blueprint)
    templates = write_templates(blueprint, folder / "cdk.out")
    models = {f"Model-{model.name}" for model in plan.models}
    bakes = any(pool.image_acceleration.ebs_snapshot for pool in loaded.blueprint.spec.pools)
    others = models | ({image_cache.STACK} if bakes else set())
    others |= {"Batch"} if loaded.blueprint.spec.batch else set()
    others |= {"Certificates", "FrontDoor"} if loaded.blueprint.spec.front_door else set()
    others |= {"PlatformKeys"} if key_owners(loaded.blueprint.spec) else set()
    others |= {"Streaming"} if loaded.blueprint.spec.streaming else set()
    others |= {"Stores"} if loaded.blueprint.spec.signal_store else set()
    others |= {"Monitoring", "Observability"} if loaded.blueprint.spec.observability else set()
    others |= (
        {"Operations"} if loaded.blueprint.spec.gpu_health or loaded.blueprint.spec.capacity_shift else set()
    )
    assert templates.by_stack.keys() == {"Data", "Network", "Cluster", "Platform", "Capacity"} | others
    assert unexplained_wildcards(templates) == []
    assert exports(templates) == []
    assert too_early(templates) == []
    assert exceeded_limits(templates) == []
    assert refused_by_aws(templates) == []
    assert lint(templates, document["spec"]["environment"]["region"]) == []
