"""Generated models without a router are valid, and each engine is drawn, also at named releases."""

from __future__ import annotations

import yaml
from hypothesis import HealthCheck, Phase, given, settings

from inference_blueprints.loading import parse_blueprint
from tests.templates.direct_strategies import DirectModel, direct_models

_ACCOUNT, _REGION = "111122223333", "us-east-1"


def test_they_are_valid_and_of_every_kind() -> None:
    """A kind that is no longer drawn, or a draw that a rule refuses, turns this red."""
    kinds: set[tuple[str, str]] = set()

    @settings(
        max_examples=120,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn=direct_models("m", "p", _REGION, _ACCOUNT))
    def load(drawn: DirectModel) -> None:
        parse_blueprint(yaml.safe_dump(_document(drawn)), "drawn.yaml")
        [(engine, section)] = drawn.model.get("engine", {"vllm": {}}).items()
        image = section.get("image")
        kinds.add((engine, "pinned" if image is None else "own" if "name" in image else "named"))

    load()
    named = {(engine, "named") for engine in ("vllm", "sglang")}
    engines = ("vllm", "sglang", "vllmNeuron", "llamaCpp", "vllmOmni")
    assert kinds == named | {(engine, image) for engine in engines for image in ("pinned", "own")}


def _document(drawn: DirectModel) -> dict[str, object]:
    nodes = {"max": 4 * sum(drawn.sizes)}
    pool = {"name": "p", "instanceTypes": [each.name for each in drawn.types], "nodes": nodes, **drawn.pool}
    return {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": "drawn"},
        "spec": {
            "environment": {"region": _REGION, "account": _ACCOUNT},
            "cluster": {"eks": {"version": "1.35"}},
            "pools": [pool],
            "models": [drawn.model],
        },
    }
