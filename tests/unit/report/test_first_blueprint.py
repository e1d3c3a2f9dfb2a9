"""First blueprints: every use with every GPU."""

from __future__ import annotations

from itertools import product

import pytest

import inference_catalog as catalog
from inference_blueprints.report.first_blueprint import (
    USES,
    Wish,
    demand_gpu,
    first_blueprint,
    fitting_gpus,
    gpus,
    models,
    usual_gpu,
)
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_contracts.errors import UserError

REGION = "us-west-2"
#: A model of each use that fits on every GPU.
SMALL = {"chat": "Qwen/Qwen3-8B", "batch": "Qwen/Qwen3-8B", "stream": "Qwen/Qwen3-8B"}


@pytest.mark.parametrize(("use", "gpu"), [*product(USES, gpus(REGION))])
def test_every_use_with_every_gpu_validates_and_plans(use: str, gpu: str) -> None:
    """A use whose text is not valid, and a pool that is too small for its workers, turn this red."""
    wish = Wish(use, SMALL.get(use) or next(iter(models(use))), REGION, gpu, name="mine")
    loaded = first_blueprint(wish)
    # What is left is for the user to decide: a certificate, and a commit of the weights.
    assert {warning.path for warning in loaded.warnings} <= {"spec.network", "spec.models[0].weights"}
    spec = loaded.blueprint.spec
    [pool] = summarise(loaded.blueprint, build_plan(loaded.blueprint))[POOLS]
    workers = spec.models[0].deployments[0].aggregated
    assert workers is not None
    assert (pool.accelerator, workers.minimum) == (gpu, workers.maximum)
    assert workers.minimum >= 2
    # Nodes have no free place for a worker, and one node more than the workers need may start.
    assert pool.accelerators_used == workers.accelerators * workers.minimum
    kind = catalog.instance_types()[spec.pools[0].instance_types[0]]
    assert pool.accelerators_used + kind.accelerator_count == spec.pools[0].nodes.max * kind.accelerator_count


def test_a_gated_model_names_the_token_that_it_needs() -> None:
    loaded = first_blueprint(Wish("chat", "meta-llama/Llama-3.1-8B-Instruct", "us-east-1", "l4"))
    arn = loaded.blueprint.spec.models[0].weights.token_secret_arn
    assert arn is not None
    assert arn.startswith("arn:aws:secretsmanager:us-east-1:")
    assert "# Replace it: the secret with your token" in loaded.text


def test_a_gpu_that_is_too_small_names_those_that_are_not() -> None:
    wish = Wish("chat", "Qwen/Qwen3-235B-A22B", REGION, "")
    with pytest.raises(UserError) as refused:
        demand_gpu("l4", wish)
    said = str(refused.value)
    assert said.startswith("got 'l4', which cannot serve Qwen/Qwen3-235B-A22B: ")
    assert "each l4 needs" in said
    assert "got 8" not in said, "the number of devices is not what the user wrote"
    assert said.endswith(f"; GPUs are {', '.join(repr(gpu) for gpu in fitting_gpus(wish))}")


def test_a_gpu_that_a_region_does_not_offer_names_the_regions_that_do() -> None:
    with pytest.raises(
        UserError, match=r"of which eu-west-3 offers no instance type; .*'h200' is in .*us-west-2"
    ):
        demand_gpu("h200", Wish("chat", "Qwen/Qwen3-8B", "eu-west-3", ""))


def test_the_default_gpu_is_the_cheapest_whose_speed_is_known() -> None:
    """A default of which `plan` knows no speed turns this red."""
    assert usual_gpu(Wish("chat", "Qwen/Qwen3-8B", REGION, "")) == "l40s"
