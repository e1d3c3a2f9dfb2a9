"""A model is asked after its deployment: healthy answers pass, and each failure is named."""

import asyncio
from typing import Any

import pytest

from inference_blueprints.measure.completions.served_models import ENGINE_HEADER, ON_PROCESSORS, SIMULATED
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.endpoint_checks import SMALL_LOAD, CheckedEndpoint, ask
from inference_blueprints.spec.types import Model
from tests.runtime.measurement.fake_endpoint import FakeEndpoint, serving
from tests.runtime.measurement.standing_clock import StandingClock, standing_clock

WORKERS = 2
#: Nobody waits for as long: a request that hangs puts the clock forward.
SECONDS = 600.0
OBJECTIVES = {"timeToFirstTokenP90Ms": 10_000, "timePerOutputTokenP90Ms": 10_000}
MODEL = {
    "name": "qwen",
    "weights": {"huggingFace": "Qwen/Qwen3-8B"},
    "workload": {"inputTokens": 120, "outputTokens": 8, "peakRequestsPerSecond": 1, "sharedPrefixRatio": 0.5},
    "objectives": OBJECTIVES,
    "deployments": [
        {"name": "main", "aggregated": {"pool": "l40s", "replicas": WORKERS, "tensorParallelSize": 1}}
    ],
}

Asked = tuple[list[CheckResult], FakeEndpoint]


def asked(
    faults: list[str] | None = None,
    *,
    model: dict[str, Any] | None = None,
    name: str = "",
    **settings: Any,
) -> Asked:
    """What the checks see of an endpoint with faults, and the endpoint."""

    async def run(clock: StandingClock) -> tuple[list[CheckResult], FakeEndpoint]:
        times: dict[str, Any] = {"wait": clock.sleep, "on_hang": lambda: clock.pass_by(SECONDS)}
        async with serving(faults=faults or [], **{"remembers": True, **times, **settings}) as fake:
            section = Model.model_validate({**MODEL, **(model or {})})
            checked = CheckedEndpoint("qwen/main", fake.base_url, section, WORKERS, SECONDS, name)
            return [result async for result in ask(checked)], fake

    with standing_clock() as clock:
        return asyncio.run(run(clock))


def of(check: str, observations: list[CheckResult]) -> CheckResult:
    """The one result of a check."""
    (found,) = [each for each in observations if each.check == check]
    return found


def test_a_healthy_model_passes_every_check() -> None:
    observations, endpoint = asked()
    assert [(each.check, each.severity) for each in observations] == [
        ("models", "ok"),
        ("tokens", "ok"),
        ("structured output", "ok"),
        ("prefix cache", "ok"),
        ("objectives", "ok"),
        ("objectives", "ok"),
    ]
    assert "512 of 519 prompt tokens are cached on repeat 1" in of("prefix cache", observations).message
    load = [len(body["messages"][0]["content"].split()) for body in endpoint.bodies][-SMALL_LOAD:]
    assert load == [120] * SMALL_LOAD, "prompts of the workload's length"
    assert not any("simulated" in each.message for each in observations)


def test_requests_have_the_name_that_the_user_gives() -> None:
    """A model with a public name answers to both."""
    named = {"publicName": "Qwen/Qwen3-8B"}
    for name, expected in (("", "qwen"), ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B")):
        observations, endpoint = asked(model=named, name=name, served=["qwen", "Qwen/Qwen3-8B"])
        assert {body["model"] for body in endpoint.bodies} == {expected}
        assert of("models", observations).message == f"qwen/main: {expected} is served"


def test_the_small_load_shares_what_the_workload_shares() -> None:
    _, endpoint = asked()
    prompts = [body["messages"][0]["content"].split() for body in endpoint.bodies][-SMALL_LOAD:]
    assert len({tuple(prompt[:60]) for prompt in prompts}) == 1
    assert len({prompt[60] for prompt in prompts}) == SMALL_LOAD


def test_simulated_engines_are_called_so() -> None:
    observations, _ = asked(headers={ENGINE_HEADER: SIMULATED})
    assert "ms (simulated)" in of("tokens", observations).message
    assert all("(simulated)" in each.message for each in observations if each.check == "objectives")
    structured = of("structured output", observations)
    assert (structured.severity, "makes up a value" in structured.message) == ("unknown", True)


def test_times_of_processors_are_neither_shown_nor_compared() -> None:
    limits = {"timeToFirstTokenP90Ms": 1, "timePerOutputTokenP90Ms": 1}
    slow = ["slow"] * 20
    observations, _ = asked(
        slow, model={"objectives": limits}, first_token_seconds=0.01, headers={ENGINE_HEADER: ON_PROCESSORS}
    )
    found = of("objectives", observations)
    assert found.severity == "unknown"
    assert f"{SMALL_LOAD} requests of 127 and 8 tokens" in found.message
    assert not [each for each in observations if " ms" in each.message]
    assert of("structured output", observations).severity == "ok", "real engines are asked for it"


@pytest.mark.parametrize(
    ("text", "ending", "severity"),
    [
        ('{"deep": false, "kind": "river"}', "stop", "ok"),
        ('{"kind": "sea", "deep": true}', "stop", "error"),
        ('{"kind": "lake", "deep": "yes"}', "stop", "error"),
        ('{"kind": "lake", "deep": true, "salt": 1}', "stop", "error"),
        ("A deep lake.", "stop", "error"),
        ("", "stop", "error"),
        ('{"kind": "la', "length", "unknown"),
    ],
)
def test_an_answer_must_follow_its_schema(text: str, ending: str, severity: str) -> None:
    observations, _ = asked(structured=(text, ending))
    assert of("structured output", observations).severity == severity


def test_a_model_that_is_not_served_is_named_beside_those_that_are() -> None:
    observations, _ = asked(served=["llama"])
    assert of("models", observations).severity == "error"
    assert "qwen is not served; served models: llama" in of("models", observations).message
    assert of("tokens", observations).severity == "ok", "it was asked all the same"


def test_an_endpoint_without_a_list_is_asked_all_the_same() -> None:
    observations, _ = asked(served=None)
    assert "HTTP 503" in of("models", observations).message
    assert of("tokens", observations).severity == "ok"


@pytest.mark.parametrize(
    ("fault", "words"),
    {
        "no tokens": "no tokens: answer without tokens",
        "http 500": "no tokens: HTTP 500 (the worker is gone)",
        "error event": "no tokens: error within the stream (no worker left)",
        "no done": "no tokens: stream ended without [DONE]",
        "hang": "no tokens: no end within the time limit (600 s)",
        "no usage": "tokens arrive, but 'usage' is missing",
        "miscounted": "usage counts 0 tokens for an answer of 16",
    }.items(),
)
def test_without_tokens_that_are_counted_nothing_else_is_asked(fault: str, words: str) -> None:
    observations, endpoint = asked([fault])
    assert of("tokens", observations).severity == "error"
    assert words in of("tokens", observations).message
    assert [
        of(check, observations).severity for check in ("structured output", "prefix cache", "objectives")
    ] == ["unknown"] * 3
    assert len(endpoint.bodies) == 2


def test_nobody_at_the_address() -> None:
    async def run() -> list[CheckResult]:
        endpoint = CheckedEndpoint("qwen/main", "http://127.0.0.1:1", Model.model_validate(MODEL), WORKERS)
        return [result async for result in ask(endpoint)]

    observations = asyncio.run(run())
    assert "connection refused" in of("models", observations).message
    assert "connection refused" in of("tokens", observations).message


@pytest.mark.parametrize("cached", [None, 0, 3])
def test_a_cache_that_finds_no_more_on_any_repeat(cached: int | None) -> None:
    observations, endpoint = asked(remembers=False, cached_tokens=cached)
    found = of("prefix cache", observations)
    assert found.severity == "error"
    assert f"has only {cached or 0} cached tokens" in found.message
    prompts = [body["messages"][0]["content"] for body in endpoint.bodies]
    assert max(prompts.count(prompt) for prompt in prompts) == 1 + WORKERS + 1, "each worker had its turn"
    assert [each.severity for each in observations if each.check == "objectives"] == ["ok", "ok"]


def test_a_new_text_that_is_counted_as_cached_proves_nothing() -> None:
    """A decode worker counts the blocks of its prefill worker as found, the first time as every time."""
    observations, _ = asked(remembers=False, cached_tokens=500)
    found = of("prefix cache", observations)
    assert found.severity == "unknown"
    assert "500 of 519 tokens of a new prompt are counted as cached" in found.message


def test_a_repeated_prompt_that_fails_hides_no_objectives() -> None:
    observations, _ = asked(["", "", "http 500"])
    assert "a repeated prompt fails: HTTP 500" in of("prefix cache", observations).message
    assert [each.severity for each in observations if each.check == "objectives"] == ["ok", "ok"]


def test_too_slow_a_model_misses_its_objectives() -> None:
    slow = ["", "", ""] + [""] + ["slow"] * SMALL_LOAD
    limits = {"timeToFirstTokenP90Ms": 20_000, "timePerOutputTokenP90Ms": 10_000}
    observations, _ = asked(slow, model={"objectives": limits}, first_token_seconds=30.0)
    first, each_token = [each for each in observations if each.check == "objectives"]
    assert (first.severity, each_token.severity) == ("error", "ok")
    assert "objective 20,000 ms" in first.message


def test_each_percentile_the_whole_request_and_the_deadline_are_compared() -> None:
    """Only 90th percentiles of tokens were: a model that misses its deadline passed."""
    slow = ["", "", ""] + [""] + ["slow"] * SMALL_LOAD
    model = {
        "objectives": {"timeToFirstTokenMs": {"p50": 20_000, "p99": 90_000}, "requestMs": {"p95": 90_000}},
        "realTime": {"deadlineMillis": 20_000},
    }
    observations, _ = asked(slow, model=model, first_token_seconds=30.0)
    found = [each for each in observations if each.check == "objectives"]
    assert [each.severity for each in found] == ["error", "ok", "ok", "error", "ok"]
    assert ["deadline of real time p99" in each.message for each in found].index(True) == 3
    assert "no objective is stated" in found[-1].message


def test_the_first_of_the_load_fills_the_cache_and_does_not_count() -> None:
    slow = ["", "", "", "slow"]
    observations, _ = asked(
        slow, model={"objectives": {"timeToFirstTokenP90Ms": 20_000}}, first_token_seconds=30.0
    )
    first, _ = [each for each in observations if each.check == "objectives"]
    assert first.severity == "ok"


def test_without_objectives_latencies_are_told() -> None:
    observations, _ = asked(model={"objectives": {}})
    assert ["no objective is stated" in each.message for each in observations[-2:]] == [True, True]


def test_a_load_that_fails_is_counted() -> None:
    observations, _ = asked(["", "", "", "", "http 500", "", "http 500"])
    found = of("objectives", observations)
    assert found.severity == "error"
    assert f"2 of {SMALL_LOAD} requests failed: HTTP 500" in found.message
