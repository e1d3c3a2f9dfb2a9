from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import inference_catalog as catalog
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

Make = Callable[..., Blueprint]

ARGUMENTS = ("spec", "models", 0, "engine", "vllm", "args")
WORKERS = ("spec", "models", 0, "deployments", 0, "aggregated")
UNKNOWN = f"which is not an argument of vllm {catalog.engine('vllm').engine_version}"


def only(found: Iterable[Finding]) -> Finding:
    [finding] = found
    assert finding.severity == "error"
    assert "\n" not in finding.message
    return finding


def test_the_shipped_quickstart_has_no_findings(make_blueprint: Make) -> None:
    assert list(serving_findings(make_blueprint())) == []


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("foo", 1, f"got 'foo', {UNKNOWN}"),
        (
            "max_model_len",
            8192,
            f"got 'max_model_len', {UNKNOWN}; did you mean 'max-model-len'?",
        ),
        (
            "--max-num-seqs",
            8,
            f"got '--max-num-seqs', {UNKNOWN}; did you mean 'max-num-seqs'?",
        ),
        (
            "gpu-memory-utilisation",
            0.8,
            f"got 'gpu-memory-utilisation', {UNKNOWN}; did you mean 'gpu-memory-utilization'?",
        ),
        ("swap-space", 4, f"got 'swap-space', {UNKNOWN}"),
        ("model", "x/y", "the plan sets 'model' itself; set weights.huggingFace or weights.s3"),
        (
            "tensor-parallel-size",
            2,
            "the plan sets 'tensor-parallel-size' itself; set tensorParallelSize of the deployment",
        ),
        (
            "enforce-eager",
            "true",
            "got 'true', but 'enforce-eager' takes no value; allowed are true and false",
        ),
        ("enforce-eager", 1, "got 1, but 'enforce-eager' takes no value; allowed are true and false"),
        ("no-enforce-eager", True, "got 'no-enforce-eager'; set 'enforce-eager: false' instead"),
        (
            "aggregate-engine-logging",
            False,
            "got false, but 'aggregate-engine-logging' can only be switched on; leave the argument out",
        ),
        (
            "max-num-seqs",
            True,
            "got true, but 'max-num-seqs' takes a value; give one or leave the argument out",
        ),
        ("max-model-len", "8k", "got '8k', must be a whole number above 0"),
        ("max-num-batched-tokens", 0, "got 0, must be a whole number above 0"),
        ("gpu-memory-utilization", 1.5, "got 1.5, must be a number above 0 and at most 1"),
        (
            "kv-cache-dtype",
            "int3",
            "got 'int3', allowed are auto, bfloat16, float16, fp8, fp8_e4m3, fp8_e5m2",
        ),
        (
            "enable-prefix-caching",
            False,
            "got false, but KV-aware routing needs the cache; remove it or set 'routing: {roundRobin: {}}'",
        ),
        (
            "max-model-len",
            50_000,
            "got 50000, but the context of Qwen/Qwen3-8B is 40960; lower it, or stretch the position "
            "encoding with 'hf-overrides'",
        ),
    ],
)
def test_a_wrong_argument_is_named_at_its_place(
    argument: str, value: Any, message: str, make_blueprint: Make
) -> None:
    blueprint = make_blueprint(engine={"vllm": {"args": {argument: value}}})
    assert only(serving_findings(blueprint)) == Finding((*ARGUMENTS, argument), message)


def test_all_wrong_arguments_are_found_at_once(make_blueprint: Make) -> None:
    blueprint = make_blueprint(engine={"vllm": {"args": {"foo": 1, "model": "x", "seed": 3, "bar": 2}}})
    assert [finding.path[-1] for finding in serving_findings(blueprint)] == ["foo", "model", "bar"]


def test_what_the_plan_owns_is_never_open(make_blueprint: Make) -> None:
    worker = build_plan(make_blueprint(weights={"s3": "s3://weights/q/", "catalog": "Qwen/Qwen3-8B"}))
    flags = [word for word in worker.models[0].deployments[0].processes[1].arguments if word.startswith("--")]
    owned = catalog.engine("vllm").owned_arguments
    settable = {"block-size", "max-model-len", "max-num-seqs", "max-num-batched-tokens"}
    settable |= {"gpu-memory-utilization", "enable-prefix-caching"}
    settable |= {"reasoning-parser", "dyn-reasoning-parser", "dyn-tool-call-parser"}
    assert {flag.removeprefix("--") for flag in flags} <= owned.keys() | settable
    assert not owned.keys() & settable


@pytest.mark.parametrize("name", sorted(catalog.engine("vllm").owned_arguments))
def test_what_the_plan_owns_is_a_flag_that_a_user_could_give(name: str) -> None:
    flags = catalog.engine("vllm").flags
    assert f"--{name}" in flags or name == "config"


def test_a_model_larger_than_its_accelerator_is_refused_with_the_sum_and_a_remedy(
    make_blueprint: Make,
) -> None:
    finding = only(serving_findings(make_blueprint(weights={"huggingFace": "Qwen/Qwen3-32B"})))
    assert finding.path == (*WORKERS, "tensorParallelSize")
    assert "61.0 GiB for weights" in finding.message
    assert "has 39.9 GiB" in finding.message
    assert "for the KV cache of one request of 3,200 tokens" in finding.message
    assert "cheapest types on which it fits: " in finding.message


def test_the_remedy_is_a_size_where_the_nodes_have_the_accelerators(make_blueprint: Make) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-32B"}
    refused = make_blueprint(weights=weights, instance_types=["g6e.12xlarge"])
    assert only(serving_findings(refused)).message.endswith("; set tensorParallelSize: 2")
    mended = make_blueprint(
        weights=weights, instance_types=["g6e.12xlarge"], aggregated={"tensorParallelSize": 2}
    )
    assert list(serving_findings(mended)) == []


def test_every_instance_type_that_is_suggested_would_do(make_blueprint: Make) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-32B"}
    message = only(serving_findings(make_blueprint(weights=weights))).message
    suggestions = message.split("cheapest types on which it fits: ")[1].split(", ")
    assert len(suggestions) == 3
    for suggestion in suggestions:
        instance_type, size = suggestion.split(" with ")
        blueprint = make_blueprint(
            weights=weights,
            instance_types=[instance_type],
            nodes=9,
            workload={"peakRequestsPerSecond": 0.1},
            aggregated={"tensorParallelSize": int(size)},
        )
        assert [finding for finding in serving_findings(blueprint) if finding.severity == "error"] == []


def test_a_cache_that_cuts_long_requests_off_is_a_warning(make_blueprint: Make) -> None:
    workload: dict[str, Any] = {"inputTokens": 8000, "peakRequestsPerSecond": 0.05}
    args = {"gpu-memory-utilization": 0.5}
    [finding] = serving_findings(make_blueprint(workload=workload, engine={"vllm": {"args": args}}))
    assert finding.severity == "warning"
    assert "may have 33792" in finding.message
    args["max-model-len"] = 16_384
    [finding] = serving_findings(make_blueprint(workload=workload, engine={"vllm": {"args": args}}))
    assert (finding.severity, finding.path[-1]) == ("warning", "max-model-len")
    workload |= {"inputTokens": {"mean": 8000, "max": 12_000}, "outputTokens": {"mean": 200, "max": 400}}
    assert list(serving_findings(make_blueprint(workload=workload, engine={"vllm": {"args": args}}))) == []


def test_a_length_that_the_user_insists_on_must_fit(make_blueprint: Make) -> None:
    arguments = {"max-model-len": 40_000, "gpu-memory-utilization": 0.5}
    finding = only(serving_findings(make_blueprint(engine={"vllm": {"args": arguments}})))
    assert "one request of 40,000 tokens" in finding.message
    # Otherwise nothing says that larger GPUs are not the remedy.
    assert "and has 22.2 GiB with 'gpu-memory-utilization' 0.5;" in finding.message


def test_a_share_of_the_memory_that_weights_leave_free_where_they_leave_nothing(make_blueprint: Make) -> None:
    """Red if the share is computed from it: the command ended with a division by zero."""
    engine = {"tensorrtLlm": {"args": {"free-gpu-memory-fraction": 0.5}}}
    findings = serving_findings(make_blueprint(weights={"huggingFace": "Qwen/Qwen3-32B"}, engine=engine))
    assert "Qwen/Qwen3-32B does not fit" in only(findings).message


def test_a_workload_beyond_the_cache_is_refused_with_a_number_of_replicas_that_would_do(
    make_blueprint: Make,
) -> None:
    finding = only(serving_findings(make_blueprint(workload={"peakRequestsPerSecond": 30.0})))
    assert finding.path == (*WORKERS, "replicas")
    assert "by Little's law" in finding.message
    enough = int(finding.message.rpartition("; set replicas: ")[2])
    mended = make_blueprint(
        nodes=enough, workload={"peakRequestsPerSecond": 30.0}, aggregated={"replicas": enough}
    )
    assert [each for each in serving_findings(mended) if each.severity == "error"] == []


def test_workers_that_serve_a_part_of_the_peak_are_a_warning_with_a_number_that_would_do(
    make_blueprint: Make,
) -> None:
    """The cache holds their requests, and the devices are too slow for them: nobody said so."""
    workload = {"inputTokens": 3000, "outputTokens": 10, "peakRequestsPerSecond": 10.0}
    [finding] = serving_findings(make_blueprint(workload=workload))
    assert (finding.severity, finding.path) == ("warning", (*WORKERS, "replicas"))
    assert "of the 10 requests per second at the peak (simulated)" in finding.message
    enough = int(finding.message.partition("; use ")[2].partition(",")[0])
    mended = make_blueprint(nodes=enough, workload=workload, aggregated={"replicas": enough})
    assert list(serving_findings(mended)) == []


@pytest.mark.parametrize(
    ("model", "size", "message"),
    [
        (
            "Qwen/Qwen3-8B",
            3,
            "got 3, but Qwen/Qwen3-8B has 32 attention heads and 8 KV heads, which must divide evenly; "
            "allowed are 1, 2, 4, 8, 16, 32",
        ),
    ],
)
def test_tensor_parallelism_divides_the_heads(
    model: str, size: int, message: str, make_blueprint: Make
) -> None:
    blueprint = make_blueprint(weights={"huggingFace": model}, aggregated={"tensorParallelSize": size})
    assert only(serving_findings(blueprint)) == Finding((*WORKERS, "tensorParallelSize"), message)


def test_weights_that_do_not_fit_the_disk_are_refused(make_blueprint: Make) -> None:
    diskless = next(
        entry.name
        for entry in catalog.instance_types().values()
        if entry.accelerator
        and entry.accelerator.manufacturer == "nvidia"
        and not entry.local_nvme_gb
        and entry.accelerator.memory_mib > 15_000
    )
    small = {
        "instance_types": [diskless],
        "disk_gib": 50,
        "aggregated": {"replicas": 1},
        "weights": {"huggingFace": "Qwen/Qwen3-0.6B"},
        "workload": {"inputTokens": 300, "outputTokens": 50, "peakRequestsPerSecond": 0.5},
        "engine": {"vllm": {"args": {"dtype": "half"}}},
    }
    [finding] = (each for each in serving_findings(make_blueprint(**small)) if each.severity == "error")
    assert finding.path == (*WORKERS, "pool")
    assert "set its disk.sizeGib to 62" in finding.message
    enough = serving_findings(make_blueprint(**small | {"disk_gib": 62}))
    assert {each.severity for each in enough} == {"warning"}


def test_a_request_beyond_the_latency_profile_is_reported(make_blueprint: Make) -> None:
    """Bug: 20,000 tokens on a profile of less took a straight line, and the peak passed as served."""
    workload = {"inputTokens": 38_000, "outputTokens": 100, "peakRequestsPerSecond": 0.01}
    blueprint = make_blueprint(workload=workload)
    [finding] = (each for each in serving_findings(blueprint) if "latency profile ends" in each.message)
    assert (finding.path, finding.severity) == (WORKERS, "warning")
    assert "a mean prompt has" in finding.message
    shared = serving_findings(make_blueprint(workload=workload | {"inputTokens": 3000}))
    assert not any("latency profile ends" in each.message for each in shared)


@pytest.mark.parametrize(
    "changes",
    [
        {"aggregated": {"pool": "absent"}},
        {"instance_types": ["g9z.large"]},
        {"weights": {"huggingFace": "some/model"}},
        {"weights": {}},
        {"workload": {"inputTokens": 90_000}},
        {"aggregated": {"tensorParallelSize": 64}, "weights": {"huggingFace": "some/model"}},
    ],
)
def test_what_the_blueprints_own_rules_report_is_passed_over(
    changes: dict[str, Any], make_blueprint: Make
) -> None:
    assert list(serving_findings(make_blueprint(**changes))) == []


def test_an_error_of_memory_hides_none_of_the_next(make_blueprint: Make) -> None:
    blueprint = make_blueprint(
        weights={"huggingFace": "Qwen/Qwen3-32B", "revision": "v1"},
        kvCache={"hostMemoryGib": 24_576, "nvme": {"gib": 60_000}},
    )
    found = list(serving_findings(blueprint))
    cache = ("spec", "models", 0, "kvCache")
    assert {each.path for each in found} == {
        (*WORKERS, "tensorParallelSize"),
        (*cache, "hostMemoryGib"),
        (*cache, "nvme", "gib"),
    }
    assert {each.severity for each in found} == {"error"}


def _suggested(blueprint: Blueprint) -> tuple[tuple[str | int, ...], int] | None:
    """Return the place and the number of the first suggestion of replicas."""
    for each in serving_findings(blueprint):
        found = re.search(r"(?:set replicas: |\(simulated\); use )(\d+)", each.message)
        if found and "at the peak" in each.message:
            return each.path, int(found[1])
    return None


@settings(max_examples=25, phases=(Phase.generate,))
@given(
    peak=st.sampled_from([0.5, 3, 11, 37, 120, 555]),
    lengths=st.sampled_from([(300, 5), (3000, 200), (12000, 900), (500, 2000)]),
    workers=st.sampled_from([1, 3, 17]),
    others=st.sampled_from([0, 1, 8]),
    objectives=st.sampled_from([{}, {"timePerOutputTokenP90Ms": 60}, {"timeToFirstTokenP90Ms": 400}]),
)
def test_suggested_replicas_are_enough(
    peak: float, lengths: tuple[int, int], workers: int, others: int, objectives: dict[str, float]
) -> None:
    """Red if a number is suggested with which the same check, or the next, asks for more.

    Little's law asked for 4 of which the profile served less than the peak; beside another deployment, more
    workers got more requests.
    """
    path = blueprints_directory() / "quickstart-g6e.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    model = document["spec"]["models"][0]
    model["workload"] |= {
        "inputTokens": lengths[0],
        "outputTokens": lengths[1],
        "peakRequestsPerSecond": peak,
    }
    model["objectives"] = objectives
    aggregated = model["deployments"][0]["aggregated"]
    aggregated["replicas"] = workers
    if others:
        model["deployments"].append({"name": "other", "aggregated": {**aggregated, "replicas": others}})
    for _ in range(2):
        suggestion = _suggested(Blueprint.model_validate(document))
        if suggestion is None:
            return
        place, number = suggestion
        model["deployments"][int(place[4])]["aggregated"]["replicas"] = number
        again = _suggested(Blueprint.model_validate(document))
        assert again is None or again[0] != place, (suggestion, again)
