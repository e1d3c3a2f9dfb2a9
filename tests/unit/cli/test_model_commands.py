"""The command models add: the entry that it writes, what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from inference_blueprints.loading import load_blueprint
from inference_blueprints.resources import root
from inference_contracts.errors import BlueprintError
from tests.unit.command_run import Ran, blueprints
from tests.unit.spec.test_model_files import CONFIGURATION

DRAFT = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 32000}


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGURATION))
    return path


def add(*arguments: str) -> Ran:
    return blueprints("models", "add", "config.json", *arguments, folder=Path.cwd())


def test_an_entry_is_written_that_a_blueprint_uses(
    tmp_path: Path,
) -> None:
    ran = add("--name", "acme/Acme-8B")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "acme/Acme-8B: Qwen3ForCausalLM, 8.19 billion parameters",
        "weights: 15.3 GiB, bf16",
        "layers: 36; 8 KV heads",
        "KV cache: 144.0 KiB per token in 16 bits",
        "context: 40960 tokens",
        "wrote models/acme--Acme-8B.json; set `huggingFace: acme/Acme-8B` or `catalog: acme/Acme-8B` in a "
        "blueprint next to `models`",
    ]
    text = (root() / "blueprints" / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    (tmp_path / "my.yaml").write_text(text.replace("Qwen/Qwen3-8B", "acme/Acme-8B"))
    assert load_blueprint("my.yaml").blueprint.spec.models[0].weights.entry is not None


ALLOCATED = Path(__file__).parents[1] / "catalog/data/allocated_by_vllm.json"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "Qwen/Qwen3.5-27B",
            "layers: 64, and 1 for multi-token prediction; 16 with 4 KV heads, 48 keep a state of 3.1 MiB "
            "per request",
        ),
        ("llama-4-scout", "layers: 48; 12 with 8 KV heads, 36 see chunks of 8192 tokens"),
        (
            "deepseek-ai/DeepSeek-V4-Flash",
            "layers: 43, and 1 for multi-token prediction; 43 see 128 tokens, 21 keep an entry per 4 tokens, "
            "20 keep an entry per 128 tokens",
        ),
        ("gemma-4-e4b", "layers: 42; 4 with 2 KV heads, 20 see 512 tokens, 18 read what other layers cache"),
        ("bge-m3", "layers: 24; they cache nothing"),
        ("mamba2", "layers: 64; keep a state of 2.1 MiB per request"),
    ],
)
def test_what_layers_of_each_kind_cache_is_said(file: Path, name: str, line: str) -> None:
    models = json.loads(ALLOCATED.read_text(encoding="utf-8"))["models"]
    file.write_text(json.dumps(next(each for each in models if each["name"] == name)["configuration"]))
    printed = add("--name", "acme/newest").out.splitlines()
    assert line in printed
    assert any(each.startswith("KV cache: ") for each in printed) == ("cache nothing" not in line)


def test_a_draft_is_written_that_a_blueprint_guesses_with(file: Path, tmp_path: Path) -> None:
    file.write_text(json.dumps(CONFIGURATION | DRAFT))
    ran = add("--name", "acme/Acme-8B-Eagle3")
    assert ran.code == 0
    assert ran.out.splitlines()[-2:] == [
        "draft: eagle3, for a model of hidden size 4096",
        "wrote models/acme--Acme-8B-Eagle3.json; set "
        "`speculation: {eagle: {huggingFace: acme/Acme-8B-Eagle3}}` in a blueprint next to `models`",
    ]
    document = yaml.safe_load((root() / "blueprints" / "quickstart-g6e.yaml").read_text(encoding="utf-8"))
    [model] = document["spec"]["models"]
    model["speculation"] = {"eagle": {"huggingFace": "acme/Acme-8B-Eagle3", "revision": "v1"}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(document))
    assert load_blueprint("my.yaml").blueprint.spec.models[0].draft is not None
    model["weights"] = {"huggingFace": "acme/Acme-8B-Eagle3", "revision": "v1"}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(BlueprintError, match="a draft, which only guesses for another model"):
        load_blueprint("my.yaml")


def test_a_file_may_name_its_model_and_have_an_export_beside_it(
    file: Path,
) -> None:
    file.write_text(json.dumps(CONFIGURATION | {"_name_or_path": "acme/Acme-8B-FP8"}))
    file.with_name("hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    ran = add("--to", "here/models", "--output", "json")
    assert ran.code == 0
    printed = json.loads(ran.out)
    assert printed["file"] == "here/models/acme--Acme-8B-FP8.json"
    assert printed["model"]["weightType"] == "fp8"


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (None, (), "config.json: got name '', must be a repository such as acme/Acme-7B; set --name"),
        (None, ("--name", "../x"), "config.json: got name '../x', must be a repository"),
        ("{,}", ("--name", "a/b"), "config.json:1:2: is not JSON: "),
        ("[]", ("--name", "a/b"), "config.json: must be a JSON object; give the model's config.json"),
        ("{}", ("--name", "a/b"), "config.json: architectures: got nothing, must be a list of one class"),
        (None, ("--name", "a/b", "--answer-format", "morse"), "config.json: answerFormat: got 'morse'"),
        (None, ("--name", "a/b", "--to", "config.json"), "config.json: cannot be made: "),
    ],
)
def test_what_cannot_be_counted_is_refused_and_writes_nothing(
    content: str | None,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    file = Path("config.json")
    if content is not None:
        file.write_text(content)
    ran = add(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert not Path("models").exists()


def test_a_class_that_is_not_counted_is_taken_with_its_layers(file: Path, tmp_path: Path) -> None:
    """The refusal shows what to give; with it, the same command writes an entry that a blueprint uses."""
    file.write_text(json.dumps(CONFIGURATION | {"architectures": ["PanguProMoEV2ForCausalLM"]}))
    refused = add("--name", "acme/Acme-8B")
    assert refused.code != 0
    shown = '[{"count": 36, "kind": "full", "kvHeads": 8, "headSize": 128}]'
    assert "'PanguProMoEV2ForCausalLM', which is not counted here; vllm " in refused.err
    assert shown in refused.err
    assert "--layers layers.json --weights-gib GIB`" in refused.err
    (tmp_path / "layers.json").write_text(shown)
    assert "got some layers and None GiB" in add("--name", "acme/Acme-8B", "--layers", "layers.json").err
    index = {"metadata": {"total_size": 15 * 1024**3}, "weight_map": {}}
    file.with_name("model.safetensors.index.json").write_text(json.dumps(index))
    assert "(its weights, 15.0 GiB, are in model.safetensors.index.json)" in add("--name", "acme/Acme-8B").err
    ran = add("--name", "acme/Acme-8B", "--layers", "layers.json")
    assert ran.code == 0
    assert ran.out.splitlines()[1:6] == [
        "weights: 15.0 GiB, bf16",
        "layers: 36; 8 KV heads",
        "KV cache: 144.0 KiB per token in 16 bits",
        "context: 40960 tokens",
        "weights and layers are as given, not counted",
    ]
    text = (root() / "blueprints" / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    (tmp_path / "my.yaml").write_text(text.replace("Qwen/Qwen3-8B", "acme/Acme-8B"))
    entry = load_blueprint("my.yaml").blueprint.spec.models[0].weights.entry
    assert entry is not None
    assert entry.source.endswith("given by the user with its layers and the size of its weights")


def _full(count: int) -> dict[str, object]:
    return {"count": count, "kind": "full", "kvHeads": 8, "headSize": 128}


@pytest.mark.parametrize(
    ("layers", "gib", "message"),
    [
        (_full(36) | {"kind": "none"}, "15", "layers: got only groups of kind none"),
        (_full(10**6), "15", "must be a whole number from 1"),
        (_full(3), "15", "layers: got 3, and the file has 36"),
        (_full(36), "nan", "and nan GiB, must be both"),
        (_full(36), "inf", "and inf GiB, must be both"),
        (_full(36), "0.001", "weightsGib: got 0.001, which"),
    ],
)
def test_layers_and_weights_that_no_model_has_are_refused(
    file: Path, tmp_path: Path, layers: dict[str, object], gib: str, message: str
) -> None:
    file.write_text(json.dumps(CONFIGURATION | {"architectures": ["PanguProMoEV2ForCausalLM"]}))
    (tmp_path / "layers.json").write_text(json.dumps([layers]))
    ran = add("--name", "acme/Acme-8B", "--layers", "layers.json", "--weights-gib", gib)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert not (tmp_path / "models").exists()


def test_weights_belong_to_layers() -> None:
    assert "without --layers, to which it belongs" in add("--name", "acme/Acme-8B", "--weights-gib", "15").err
