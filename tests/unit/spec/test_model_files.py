"""Entries of models next to a blueprint: what they serve, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.resources import root
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_contracts.errors import BlueprintError

CONFIGURATION = {
    "architectures": ["Qwen3ForCausalLM"],
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "vocab_size": 151936,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
}
ENTRY: dict[str, Any] = {
    "name": "acme/Acme-8B",
    "configuration": CONFIGURATION,
    "exportedQuantization": None,
    "answerFormat": "qwen3",
    "gated": False,
    "licence": "Acme's",
    "source": "a test",
}


@pytest.fixture
def blueprint(tmp_path: Path) -> Path:
    """A blueprint that serves a model that the catalogue does not have."""
    text = (root() / "blueprints" / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    path = tmp_path / "my.yaml"
    path.write_text(text.replace("Qwen/Qwen3-8B", "acme/Acme-8B"), encoding="utf-8")
    (tmp_path / "models").mkdir()
    return path


def put(blueprint: Path, content: object, name: str = "acme--Acme-8B.json") -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (blueprint.parent / "models" / name).write_text(text, encoding="utf-8")


def problems(blueprint: Path) -> list[str]:
    with pytest.raises(BlueprintError) as raised:
        load_blueprint(str(blueprint))
    return [f"{Path(each.file).name}: {each.message}" for each in raised.value.problems]


def test_without_an_entry_the_model_is_not_known(blueprint: Path) -> None:
    [problem] = problems(blueprint)
    assert "got 'acme/Acme-8B', not in the catalogue" in problem
    assert "`blueprints models add`" in problem


def test_an_entry_next_to_the_blueprint_is_served_as_the_catalogue_s_would_be(blueprint: Path) -> None:
    put(blueprint, ENTRY)
    ours = load_blueprint(str(blueprint)).blueprint
    shipped = load_blueprint("quickstart-g6e").blueprint
    [worker], [same] = (build_plan(each).models[0].deployments[0].workers for each in (ours, shipped))
    assert worker.engine == same.engine
    assert resolve(ours, 0, 0)[0].shape.licence == "Acme's"


def test_an_entry_comes_before_the_catalogue_s(blueprint: Path) -> None:
    blueprint.write_text(blueprint.read_text().replace("acme/Acme-8B", "Qwen/Qwen3-8B"))
    put(blueprint, ENTRY | {"name": "Qwen/Qwen3-8B"})
    assert resolve(load_blueprint(str(blueprint)).blueprint, 0, 0)[0].shape.licence == "Acme's"


def test_an_entry_counts_in_a_blueprint_with_other_errors(blueprint: Path) -> None:
    put(blueprint, ENTRY)
    blueprint.write_text(blueprint.read_text().replace("replicas: 2", "replicas: many"))
    [problem] = problems(blueprint)
    assert "'many'" in problem


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "acme--Acme-8B.json"),
        ("9" * 5000, "is not usable JSON"),
        ("[" * 100_000, "is not usable JSON"),
        ([], "must be a JSON object; make it again with `blueprints models add`"),
        ({}, "missing or wrong fields: name, configuration, "),
        (ENTRY | {"more": 1}, "unknown fields: more"),
        (ENTRY | {"name": "../.."}, "name: got '../..', must be a repository such as acme/Acme-7B"),
        (ENTRY | {"answerFormat": "morse"}, "answerFormat: got 'morse', allowed are "),
        (ENTRY | {"configuration": CONFIGURATION | {"vocab_size": "x"}}, "vocab_size: got 'x'"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(blueprint: Path, content: object, message: str) -> None:
    put(blueprint, content)
    assert any(message in problem for problem in problems(blueprint))
