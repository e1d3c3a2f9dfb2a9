"""What an engine on processors can do, and what it refuses.

A setting that works is used on this machine as planned. One that is refused is in the table of exceptions;
once a release of the engine accepts it, its test fails, and its exception can go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.engines.trials import Outcome, run_trials

pytestmark = [pytest.mark.engines, pytest.mark.xdist_group("engines")]

TRIALS: Mapping[str, Mapping[str, Any]] = json.loads(
    Path(__file__).with_name("engine_trials.json").read_text(encoding="utf-8")
)
ALONE = "one process"
APART = [name for name, trial in TRIALS["works"].items() if "prefill" in trial]
RECEIVED = "vllm:external_prefix_cache_hits"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcome]:
    """Return the outcome of every trial."""
    return run_trials(
        tmp_path_factory.mktemp("trials"), {**TRIALS["works"], **TRIALS["drafts"], **TRIALS["refused"]}
    )


@pytest.mark.parametrize("name", TRIALS["works"])
def test_the_answers_are_those_of_one_process(outcomes: Mapping[str, Outcome], name: str) -> None:
    """However it is split and whoever computes the prompt, an engine gives the same answers."""
    assert outcomes[name].error == ""
    assert len(set(outcomes[ALONE].answers)) == len(outcomes[ALONE].answers), "prompts change the answer"
    assert outcomes[name].answers == outcomes[ALONE].answers


@pytest.mark.parametrize("name", TRIALS["drafts"])
def test_an_engine_answers_with_random_guesses(outcomes: Mapping[str, Outcome], name: str) -> None:
    """Layers or a draft with random weights guess; whatever they guess, each answer is whole."""
    assert outcomes[name].error == ""
    assert outcomes[name].counters["vllm:spec_decode_num_drafts"] > 0
    assert {len(answer) for answer in outcomes[name].answers} == {len(outcomes[ALONE].answers[0])}


@pytest.mark.parametrize("name", APART)
def test_every_token_of_the_prompts_is_received(outcomes: Mapping[str, Outcome], name: str) -> None:
    """An engine receives every token of a prompt that another computed."""
    assert outcomes[name].counters[RECEIVED] == sum(outcomes[name].prompts)


@pytest.mark.parametrize("name", APART)
def test_the_planned_connector_is_not_called_deprecated(outcomes: Mapping[str, Outcome], name: str) -> None:
    """No engine warns that the planned connector or its role is deprecated."""
    assert "kv_role='kv_consumer'" in outcomes[name].log, "the engine logs its arguments"
    assert "NixlConnector is deprecated" not in outcomes[name].log


def test_an_engine_alone_receives_nothing(outcomes: Mapping[str, Outcome]) -> None:
    """An engine without another receives no tokens."""
    assert outcomes[ALONE].counters[RECEIVED] == 0


@pytest.mark.parametrize("name", TRIALS["refused"])
def test_the_engine_refuses_it_for_the_known_reason(outcomes: Mapping[str, Outcome], name: str) -> None:
    """A setting that processors cannot take fails for the recorded reason."""
    assert outcomes[name].error, "it works now: remove its exception, and move it to the trials that work"
    assert TRIALS["refused"][name]["reason"] in outcomes[name].error + outcomes[name].log
