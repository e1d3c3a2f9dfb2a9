"""What differs from the plan for the real llama-server on this machine, and which blueprints it runs."""

from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_local.serving.engine_kinds import default_engines, engine_kind
from inference_local.serving.engine_names import EngineName
from inference_local.serving.llama_cpp.llama_kind import LlamaKind, LlamaRole
from inference_local.serving.local_deployment import WorkerPlace
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.vllm_cpu.machine import Machine

SHIPPED = "graviton-llama-cpp"
REPLACED = {"--model", "--model-url", "--host", "--threads", "--threads-batch", "--parallel", "--ctx-size"}
SCALING = {"target of tokens-in-flight", "target of requests-in-flight", "wait before SIGTERM"}


@pytest.fixture
def role() -> LlamaRole:
    blueprint = load_blueprint(SHIPPED).blueprint
    [model] = build_plan(blueprint).models
    [deployment] = LocalTarget(blueprint, LlamaKind(blueprint, Machine(8, 2))).render(model)
    [role] = deployment.workers
    assert isinstance(role, LlamaRole)
    return role


def test_only_the_listed_arguments_differ_from_the_plan(role: LlamaRole) -> None:
    """It turns red if an argument changes that the report does not list, or the report lists another one."""
    place = WorkerPlace(Path("/run"), "127.0.0.2", 9090)
    here = role.launch("qwen3-4b", place, 1).command[1:]
    planned = role.planned.arguments
    reported = {each.setting for each in role.replacements}
    assert reported == REPLACED | {"HOME"} | SCALING
    assert _other(here) == _other(planned)
    assert here[here.index("--host") + 1] == "127.0.0.2"
    assert "--model-url" not in here


def test_a_sequence_has_the_planned_length(role: LlamaRole) -> None:
    """It turns red if fewer sequences shorten each of them, so that the plan's longest request is refused."""
    place = WorkerPlace(Path("/run"), "127.0.0.2", 9090)
    here = role.launch("qwen3-4b", place, 1).command
    lengths = [
        int(words[words.index("--ctx-size") + 1]) // int(words[words.index("--parallel") + 1])
        for words in (here, list(role.planned.arguments))
    ]
    assert lengths[0] == lengths[1] >= role.context_length


def test_a_server_that_computes_fewer_requests_carries_the_same_share_of_the_load(role: LlamaRole) -> None:
    """It turns red if the targets stay those of the planned server: no load here would reach them."""
    assert role.planned.engine
    assert role.planned.scaling
    share = role.at_once / role.planned.engine.max_num_seqs
    planned = {each.name: each.target for each in role.planned.scaling.triggers}
    assert share < 1
    assert role.targets == {
        name: pytest.approx(target * share) for name, target in planned.items() if name != "queue-length"
    }
    assert (role.replicas, role.maximum) == (2, 3)


def test_the_report_says_that_the_server_is_real_and_the_processor_is_not_graviton(role: LlamaRole) -> None:
    """It turns red if the table of parts lets a reader take the run for one on Graviton."""
    assert role.state == "real"
    assert "random weights" in role.detail
    assert "not graviton4" in role.detail


def test_models_of_other_engines_are_refused() -> None:
    """It turns red if a run starts llama-server for a model of another engine."""
    with pytest.raises(UserError, match="has the engine vllm"):
        LlamaKind(load_blueprint("quickstart-g6e").blueprint).check()


def test_a_file_that_the_user_names_is_said_to_be_served(tmp_path: Path) -> None:
    """It turns red if the report calls its weights random, or the replay may not fit its context."""
    blueprint = load_blueprint(SHIPPED).blueprint
    [model] = build_plan(blueprint).models
    kind = LlamaKind(blueprint, Machine(8, 2), file=tmp_path / "own.gguf")
    [deployment] = LocalTarget(blueprint, kind).render(model)
    [named] = deployment.workers
    assert "weights of own.gguf" in named.detail
    assert "own.gguf" in named.answers
    [row] = [each for each in named.replacements if each.setting == "--model-url"]
    assert row.reason == "the file that you named; nothing is downloaded"
    assert named.planned.engine
    assert named.context_length * len(" bado") <= named.planned.engine.max_model_len


def test_a_file_is_refused_with_engines_that_do_not_read_it() -> None:
    with pytest.raises(UserError, match="only llama-server reads it"):
        engine_kind(EngineName.SIMULATED, load_blueprint(SHIPPED).blueprint, Path("own.gguf"))


def test_a_file_is_refused_for_several_models() -> None:
    document = load_blueprint(SHIPPED).blueprint.model_dump(by_alias=True, exclude_unset=True)
    models = document["spec"]["models"]
    models.append({**models[0], "name": "another"})
    kind = engine_kind(EngineName.LLAMA, Blueprint.model_validate(document), Path("own.gguf"))
    with pytest.raises(UserError, match="--gguf names one file, and the blueprint has several models"):
        kind.check()


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_run_without_a_choice_is_real_for_llama_cpp_only(name: str) -> None:
    """It turns red if `make run` of another blueprint starts a build."""
    expected = EngineName.LLAMA if name == SHIPPED else EngineName.SIMULATED
    assert default_engines(load_blueprint(name).blueprint) == expected


def _other(words: tuple[str, ...] | list[str]) -> list[str]:
    """Return the words of the arguments that are the same everywhere."""
    kept, skipped = list[str](), False
    for word in words:
        skipped = word in REPLACED if word.startswith("--") else skipped
        if not skipped:
            kept.append(word)
    return kept
