"""llama.cpp on Graviton: the arguments follow from the instance type, and what does not fit is refused."""

from __future__ import annotations

from typing import get_args

import pytest

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.command_line import flag_values
from inference_blueprints.serving.engines.llama_cpp import bound_tokens_per_second
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.sections.gguf.keys import GgufType
from inference_catalog.figures import published_speeds
from inference_catalog.gguf_types import bits_per_weight, gguf_types, in_gguf
from inference_contracts.errors import BlueprintError

SHIPPED = (blueprints_directory() / "graviton-llama-cpp.yaml").read_text(encoding="utf-8")
GIB = 1024**3


def edited(*replacements: tuple[str, str]) -> str:
    text = SHIPPED
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return text


def worker(text: str) -> Process:
    return build_plan(parse_blueprint(text, "test.yaml").blueprint).models[0].deployments[0].workers[0]


def resolved(text: str) -> ResolvedWorkers:
    return resolve(parse_blueprint(text, "test.yaml").blueprint, 0, 0)[0]


def refused(text: str) -> str:
    with pytest.raises(BlueprintError) as caught:
        build_plan(parse_blueprint(text, "test.yaml").blueprint)
    return str(caught.value)


class TestArguments:
    def test_every_argument_is_a_flag_of_the_release(self) -> None:
        engine = catalog.engine("llamaCpp")
        words = list(worker(SHIPPED).arguments)
        while words:
            flag = engine.flag(word := words.pop(0))
            assert flag is not None, word
            if flag.takes_value:
                assert not words.pop(0).startswith("--"), word

    @pytest.mark.parametrize(
        ("kind", "threads", "numa"),
        [
            ("c8g.8xlarge", 32, None),
            ("m8g.24xlarge", 96, None),
            ("c8g.48xlarge", 192, "distribute"),
            ("r8g.metal-48xl", 192, "distribute"),
        ],
    )
    def test_threads_are_physical_cores_and_two_sockets_are_numa(
        self, kind: str, threads: int, numa: str | None
    ) -> None:
        values = flag_values(worker(edited(("c8g.8xlarge", kind))).arguments)
        assert (values["threads"], values["threads-batch"]) == (str(threads), str(threads))
        assert values.get("numa") == numa

    def test_each_slot_holds_the_longest_request(self) -> None:
        process = worker(SHIPPED)
        values = flag_values(process.arguments)
        assert process.engine is not None
        slots, context = int(values["parallel"]), int(values["ctx-size"])
        assert context // slots >= process.engine.max_model_len
        assert "--no-kv-unified" in process.arguments, "one slot could fill the cache of the others"

    def test_memory_is_not_counted_on_twice(self) -> None:
        values = flag_values(worker(SHIPPED).arguments)
        assert (values["cache-ram"], values["ctx-checkpoints"], values["load-mode"]) == ("0", "0", "none")

    def test_the_file_is_that_of_the_commit(self) -> None:
        text = edited(("bc640142c66e1fdd12af0bd68f40445458f3869b", "abc123"))
        url = flag_values(worker(text).arguments)["model-url"]
        assert url == "https://huggingface.co/Qwen/Qwen3-4B-GGUF/resolve/abc123/Qwen3-4B-Q4_K_M.gguf"

    def test_values_of_the_cache_have_the_type_of_its_keys(self) -> None:
        values = flag_values(
            worker(edited(("{llamaCpp: {}}", "{llamaCpp: {args: {cache-type-k: q8_0}}}"))).arguments
        )
        assert (values["cache-type-k"], values["cache-type-v"]) == ("q8_0", "q8_0")

    def test_it_needs_no_device_and_tolerates_the_blueprint_s_taint_only(self) -> None:
        process = worker(SHIPPED)
        assert process.resources.devices == 0
        assert [each.key for each in process.tolerations] == ["models"]
        assert process.architecture == "arm64"

    def test_the_signal_to_end_comes_after_the_longest_answer(self) -> None:
        process = worker(SHIPPED)
        assert process.termination_grace_seconds - process.pre_stop_seconds < 60 <= process.pre_stop_seconds


class TestMemory:
    @pytest.mark.parametrize(
        ("kind", "gib"),
        [
            *(("Q2_K", 2.95), ("Q3_K_M", 3.74), ("Q4_0", 4.34), ("Q4_K_M", 4.58), ("Q8_0", 7.96)),
            *(("IQ2_M", 2.74), ("IQ3_XXS", 3.04), ("IQ4_XS", 4.17), ("IQ4_NL", 4.38)),
        ],
    )
    def test_files_have_the_size_that_llama_cpp_states_for_llama_3_8b(self, kind: str, gib: float) -> None:
        size = in_gguf(catalog.model("meta-llama/Llama-3.1-8B-Instruct"), kind).weight_bytes / GIB
        # The output layer counts with 6.6 bits, which is more of a smaller file.
        assert 0.999 * gib <= size <= 1.17 * gib

    def test_every_type_of_the_catalogue_can_be_named(self) -> None:
        assert get_args(GgufType) == gguf_types()
        assert {*gguf_types()} == {*bits_per_weight(), "MXFP4"}

    def test_weights_published_in_mxfp4_keep_their_size(self) -> None:
        published = catalog.model("openai/gpt-oss-20b")
        # ggml-org/gpt-oss-20b-GGUF, gpt-oss-20b-mxfp4.gguf: 12.1 GB on its page; the rest is in 8 bits there.
        assert 12.1e9 <= in_gguf(published, "MXFP4").weight_bytes == published.weight_bytes
        assert in_gguf(published, "MXFP4").weight_type == "gguf"
        assert in_gguf(published, "Q4_0") == published

    def test_the_pod_s_memory_is_all_there_is(self) -> None:
        memory = worker_memory(resolved(SHIPPED))
        assert memory.total_bytes == worker(SHIPPED).resources.memory_mib * 1024**2
        used = memory.weights_bytes + memory.activation_bytes + memory.reserved_bytes + memory.kv_cache_bytes
        assert used == memory.total_bytes

    def test_eight_bits_halve_the_cache(self) -> None:
        text = edited(("{llamaCpp: {}}", "{llamaCpp: {args: {cache-type-k: q8_0}}}"))
        smaller = worker_memory(resolved(text)).kv_bytes_per_token
        assert smaller == worker_memory(resolved(SHIPPED)).kv_bytes_per_token * 34 / 64

    def test_the_bound_is_the_memory_bandwidth_over_the_weights(self) -> None:
        bound = bound_tokens_per_second(resolved(SHIPPED))
        weights = resolved(SHIPPED).device_shape.weight_bytes
        assert bound == pytest.approx(12 * 5600e6 * 8 / 3 / weights)
        assert bound is not None
        doubled = bound_tokens_per_second(resolved(edited(("c8g.8xlarge", "c8g.16xlarge"))))
        assert doubled == pytest.approx(2 * bound)

    def test_a_published_speed_is_below_the_bound_and_near_it(self) -> None:
        """Arm's Learning Path, as the catalogue has it: Llama 3.1 8B on r8g.16xlarge."""
        [published] = [each for each in published_speeds() if each.instance_type == "r8g.16xlarge"]
        text = edited(
            ("c8g.8xlarge", "r8g.16xlarge"),
            ("catalog: Qwen/Qwen3-4B", "catalog: meta-llama/Llama-3.1-8B-Instruct"),
            ("Qwen3-4B-Q4_K_M.gguf, type: Q4_K_M", "llama-Q4_0.gguf, type: Q4_0"),
        )
        bound = bound_tokens_per_second(resolved(text))
        assert bound is not None
        assert 0.7 * bound < published.least_tokens_per_second < bound

    @pytest.mark.parametrize(("factor", "warned"), [(0.99, True), (1.01, False)])
    def test_an_objective_below_the_bound_is_warned_of(self, factor: float, *, warned: bool) -> None:
        bound = bound_tokens_per_second(resolved(SHIPPED))
        assert bound is not None
        wanted = f"timePerOutputTokenP90Ms: {factor * 1000 / bound:.3f}"
        text = edited(("timePerOutputTokenP90Ms: 150", wanted))
        found = parse_blueprint(text, "test.yaml").blueprint
        messages = [each.message for each in serving_findings(found)]
        assert any("to read the weights for a token" in each for each in messages) == warned


REFUSED: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "a model that does not fit": (
        (("c8g.8xlarge", "c8g.large"),),
        "does not fit",
    ),
    "processors that the catalogue does not know": (
        (("c8g.8xlarge", "c7i.8xlarge"),),
        "needs instance types without accelerators",
    ),
    "a GPU": ((("c8g.8xlarge", "g6e.2xlarge"),), "needs instance types without accelerators"),
    "another engine on Graviton": (
        (("engine: {llamaCpp: {}}", "engine: {vllm: {}}"),),
        "reads no GGUF",
    ),
    "no file": (
        (("      gguf: {file: Qwen3-4B-Q4_K_M.gguf, type: Q4_K_M}\n", ""),),
        "'gguf' is missing",
    ),
    "a part of a file": (
        (("Qwen3-4B-Q4_K_M.gguf", "Qwen3-4B-Q4_K_M-00001-of-00002.gguf"),),
        "a part of a model",
    ),
    "a file of another type": (
        (("type: Q4_K_M", "type: Q8_0"),),
        "set 'type: Q4_K_M', or name the file with Q8_0",
    ),
    "a file of another type by its short name": (
        (("Qwen3-4B-Q4_K_M.gguf, type: Q4_K_M", "qwen3-4b-q4_k.gguf, type: Q4_K_S"),),
        "set 'type: Q4_K_M', or name the file with Q4_K_S",
    ),
    "a file of a type without a size": (
        (("Qwen3-4B-Q4_K_M.gguf", "Qwen3-4B-Q4_K_XL.gguf"),),
        "the size of Q4_K_XL is not known here",
    ),
    "a dynamic file": (
        (("Qwen3-4B-Q4_K_M.gguf", "Qwen3-4B-UD-Q4_K_M.gguf"),),
        "a dynamic file of Unsloth",
    ),
    "MXFP4 of a model with 16 bits": (
        (("Qwen3-4B-Q4_K_M.gguf, type: Q4_K_M", "Qwen3-4B.gguf, type: MXFP4"),),
        "the type MXFP4 keeps weights that are published in mxfp4",
    ),
    "another type of a model in MXFP4": (
        (("catalog: Qwen/Qwen3-4B", "catalog: openai/gpt-oss-20b"),),
        "set 'type: MXFP4'",
    ),
    "more sequences than the memory holds": (
        (("{llamaCpp: {}}", "{llamaCpp: {args: {parallel: 4000}}}"),),
        "each of the sequences has a part for 3072 of them; set at most 123",
    ),
    "a node that is too small": (
        (("c8g.8xlarge", "c8g.xlarge"), ("Qwen3-4B-Q4_K_M.gguf, type: Q4_K_M", "a.gguf, type: BF16")),
        "the cheapest types on which it fits: r8g.large, m8g.xlarge",
    ),
    "a quantisation while loading": (
        (("    workload:", "    quantization: fp8\n    workload:"),),
        "remove it, and name a smaller type of file",
    ),
    "GPU health without a GPU": (
        (("  models:", "  observability: {}\n  gpuHealth: {action: observe}\n  models:"),),
        "no pool has accelerators, so there is nothing to watch",
    ),
    "types of different sizes": ((("[c8g.8xlarge]", "[c8g.8xlarge, c8g.16xlarge]"),), "vCPUs"),
    "two nodes per server": ((("tensorParallelSize: 1", "tensorParallelSize: 2"),), "tensorParallelSize"),
    "a router": (
        (("    workload:", "    stack: {dynamo: {}}\n    workload:"),),
        "which runs on 'direct'",
    ),
    "threads of one's own": (
        (("{llamaCpp: {}}", "{llamaCpp: {args: {threads: 8}}}"),),
        "the plan sets 'threads' itself",
    ),
    "a key in the arguments": (
        (("{llamaCpp: {}}", "{llamaCpp: {args: {api-key: secret}}}"),),
        "the plan sets 'api-key' itself",
    ),
    "an argument that llama.cpp does not have": (
        (("{llamaCpp: {}}", "{llamaCpp: {args: {mlock: true}}}"),),
        "which is not an argument of llamaCpp",
    ),
    "weights that are already quantised": (
        (("catalog: Qwen/Qwen3-4B", "catalog: Qwen/Qwen3-32B-FP8"),),
        "name the entry of the model with 16 bits",
    ),
    "weights in S3": (
        (("huggingFace: Qwen/Qwen3-4B-GGUF", "s3: s3://weights/qwen/"),),
        "is not supported with 'gguf'",
    ),
    "fp8 in the cache": (
        (("    workload:", "    kvCacheType: fp8\n    workload:"),),
        "llamaCpp supports auto, bf16",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_served_is_refused(case: str) -> None:
    replacements, message = REFUSED[case]
    assert message in refused(edited(*replacements))


@pytest.mark.parametrize(
    "replacements",
    [
        (("Qwen3-4B-Q4_K_M.gguf", "q4/model.gguf"),),
        (("Qwen3-4B-Q4_K_M.gguf", "Q8_0/qwen3-4b.q4_k_m.gguf"),),
        (("Qwen3-4B-Q4_K_M.gguf, type: Q4_K_M", "Qwen3-4B-IQ4_XS.gguf, type: IQ4_XS"),),
        (
            ("Qwen3-4B-Q4_K_M.gguf, type: Q4_K_M", "gpt-oss-20b-mxfp4.gguf, type: MXFP4"),
            ("catalog: Qwen/Qwen3-4B", "catalog: openai/gpt-oss-20b"),
        ),
    ],
)
def test_files_whose_names_do_not_contradict_their_type_are_served(
    replacements: tuple[tuple[str, str], ...],
) -> None:
    file = edited(*replacements).split("file: ")[1].split(",")[0]
    assert flag_values(worker(edited(*replacements)).arguments)["model-url"].endswith(f"/{file}")


def test_a_small_disk_is_not_answered_with_weights_in_s3_which_llama_cpp_does_not_read() -> None:
    text = edited(("    nodes: {max: 4}\n", "    nodes: {max: 4}\n    disk: {sizeGib: 50}\n"))
    assert "set its disk.sizeGib to" in refused(text)
    assert "stream the weights" not in refused(text)


@pytest.mark.parametrize(
    "settings",
    ["kvCache: {hostMemoryGib: 4}", "routing: {kvAware: {}}", "frontend: {replicas: 2}"],
)
def test_no_answer_names_a_stack_that_does_not_run_llama_cpp(settings: str) -> None:
    message = refused(edited(("    workload:", f"    {settings}\n    workload:")))
    assert "remove it" in message
    assert "dynamo" not in message


def test_as_many_sequences_as_the_memory_holds_are_served() -> None:
    values = flag_values(worker(edited(("{llamaCpp: {}}", "{llamaCpp: {args: {parallel: 123}}}"))).arguments)
    assert int(values["ctx-size"]) == 123 * 3072


def test_vllm_does_not_run_on_graviton() -> None:
    text = edited(
        ("    engine: {llamaCpp: {}}\n", ""),
        ("      gguf: {file: Qwen3-4B-Q4_K_M.gguf, type: Q4_K_M}\n", ""),
    )
    assert "needs accelerators of nvidia" in refused(text)
