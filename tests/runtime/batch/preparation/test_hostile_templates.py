"""Templates that are meant to exhaust a machine. Each one is refused, and other teams' jobs go on."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from batch.contracts.request import Input, JobRequest, RequestTemplate
from batch.preparation import row_checks
from batch.preparation.row_checks import CostlyTemplateError, PromptRenderer, RenderingLimits
from inference_contracts.batch_configuration import Capacity
from inference_contracts.prompt_template import RenderingError
from inference_runtime import runtime_directory
from tests.runtime.batch import resources
from tests.runtime.batch.preparation.preparing import prepare

#: Nested lists of 40 levels with two entries each: 2 to the power of 40 entries, in almost no memory.
NESTED = "{{% set {name} = [0] %}}" + "{{% set {name} = [{name}, {name}] %}}" * 40
TWO_TREES = NESTED.format(name="a") + NESTED.format(name="b")
JOINED = "{% set a = [0] %}" + "{% set a = [a, a] | sum(start=[]) %}" * 23 + "{{ a | length }}"
MULTIPLIED = "{% set a = n * n %}" + "{% set a = a * a %}" * 60 + "{{ a }}"
LIMITS = RenderingLimits(memory_bytes=192 * 2**20, row_seconds=1, total_seconds=30)
LITTLE_MEMORY = RenderingLimits(memory_bytes=64 * 2**20, row_seconds=20, total_seconds=60)

REQUEST = JobRequest(
    job="hostile",
    team="ads",
    queue="nightly",
    model="qwen",
    endpoint="/v1/chat/completions",
    inputs=(Input(resources.BUCKET, "in.jsonl"),),
    deadline=4e9,
    budget_usd=100.0,
    capacity=Capacity(1e6, 1e6, 1.0, 4.0),
)


def test_lists_that_double_are_refused() -> None:
    with (
        pytest.raises(RenderingError, match="sum is only for numbers"),
        closing(PromptRenderer(JOINED, max_characters=1000, limits=LIMITS)) as prompts,
    ):
        prompts.render({})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "limits", "reason"),
    [
        (NESTED.format(name="a") + "{{ a }}", LITTLE_MEMORY, "needs more than 64 MiB of memory"),
        (NESTED.format(name="a") + "{{ a | string | length }}", LITTLE_MEMORY, "needs more than 64 MiB"),
        (TWO_TREES + "{{ a == b }}", LIMITS, "takes more than 1 s of processor time"),
        (TWO_TREES + "{{ [a, b] | max | length }}", LIMITS, "takes more than 1 s of processor time"),
    ],
)
def test_what_the_sandbox_cannot_bound_the_operating_system_does(
    text: str, limits: RenderingLimits, reason: str
) -> None:
    with (
        pytest.raises(CostlyTemplateError, match=reason),
        closing(PromptRenderer(text, max_characters=1000, limits=limits)) as prompts,
    ):
        prompts.render({})


@pytest.mark.thorough
def test_all_rows_together_are_bounded() -> None:
    """Rows that take half a second each would otherwise occupy a function for its fifteen minutes."""
    slow = "{% for a in rows %}{% for b in rows %}{% if a == b %}{% endif %}{% endfor %}{% endfor %}"
    limits = replace(LIMITS, row_seconds=2, total_seconds=2)
    with closing(PromptRenderer(slow, max_characters=1000, limits=limits)) as prompts:
        row = {"rows": [[0] * 3000 + [number] for number in range(30)]}
        with pytest.raises(CostlyTemplateError, match="one part of the input takes more than 2 s"):
            _ = [prompts.render(row) for _ in range(10_000)]


@pytest.mark.thorough
def test_the_process_has_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []
    start = subprocess.Popen

    def record(*arguments: object, **options: object) -> object:
        given.append(options["env"])  # type: ignore[arg-type]
        return start(*arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr(subprocess, "Popen", record)
    with closing(PromptRenderer("Hello {{ name }}", max_characters=100)) as prompts:
        assert prompts.render({"name": "ü\ud83d"}) == "Hello ü\ud83d"
    [environment] = given
    assert set(environment) == {"PYTHONPATH", "MALLOC_ARENA_MAX"}


@pytest.mark.thorough
@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(
    "text", [JOINED, MULTIPLIED, NESTED.format(name="a") + "{{ a }}", TWO_TREES + "{{ a == b }}"]
)
def test_a_hostile_job_never_runs_and_the_next_one_does(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(row_checks.PromptRenderer.__init__, "__kwdefaults__", {"limits": LIMITS})
    hostile = replace(REQUEST, template=RequestTemplate(text), skip_invalid=True)
    refused = prepare(hostile, b'{"n": 9223372036854775807}\n' * 3)
    assert refused.planned["accepted"] is False
    assert refused.lines == []
    assert {row["error"]["message"].partition(":")[0] for row in refused.errors} == {"template"}
    other = replace(REQUEST, job="other", team="search", template=RequestTemplate("What is {{ n }}?"))
    accepted = prepare(other, b'{"n": 1}\n')
    assert accepted.planned["accepted"] is True
    [line] = accepted.lines
    assert line["body"]["messages"][0]["content"] == "What is 1?"


@pytest.mark.thorough
def test_a_worker_cannot_render() -> None:
    """It serves many teams at once, so it must not even have the library."""
    check = (
        "import sys, batch.worker.worker_loop\n"
        "print(sorted(name for name in sys.modules if name.startswith('jinja2') or 'rendering' in name))"
    )
    found = subprocess.run(
        [sys.executable, "-c", check],
        env={"PYTHONPATH": f"{runtime_directory()}:{runtime_directory().parent}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"
