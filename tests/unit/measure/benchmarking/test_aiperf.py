"""What aiperf is asked, and what its records become."""

import gzip
import json
from typing import Any

import pytest

from inference_blueprints.measure.benchmarking import load_generators
from inference_blueprints.measure.benchmarking.load_generators import LoadTest, Question
from inference_contracts.errors import UserError
from tests.unit.measure.benchmarking.recorded import ANSWERED, FAILED, said

LOAD_TEST = LoadTest(
    "http://host", "qwen", ("ab", "cd"), (Question(0.0, ((3, 7),), 20), Question(1.5, ((2, 9),), 30))
)


def document(load_test: LoadTest) -> dict[str, Any]:
    return dict(json.loads(gzip.decompress(load_test.packed("builtin"))))


def test_the_document_holds_words_arguments_and_requests_with_exact_answers() -> None:
    found = document(LOAD_TEST)
    assert found["words"] == ["ab", "cd"]
    assert found["requests"][1] == {
        "timestamp": 1500.0,
        "blocks": [[2, 9]],
        "body": {
            "model": "qwen",
            "max_tokens": 30,
            "min_tokens": 30,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    }
    options = dict(zip(found["arguments"], found["arguments"][1:], strict=False))
    assert options["--url"] == "http://host"
    assert options["--custom-dataset-type"] == "mooncake_trace"
    assert options["--tokenizer"] == "builtin"
    assert {"--streaming", "--fixed-schedule", "--use-server-token-count"} <= set(found["arguments"])


def test_an_errand_lasts_as_long_as_its_last_answer_may_take() -> None:
    assert LOAD_TEST.seconds == 1.5 + load_generators.REQUEST_SECONDS + load_generators.OVERHEAD_SECONDS


def test_answers_and_failures_become_outcomes_in_the_order_of_sending() -> None:
    failed, answered = load_generators.outcomes(said(ANSWERED, FAILED))
    assert answered.failure is None
    assert answered.time_to_first_token_ms == pytest.approx(80.0)
    assert answered.end_to_end_ms == pytest.approx(650.0)
    assert answered.time_per_output_token_ms == pytest.approx(570.0 / 19)
    assert answered.usage is not None
    assert (answered.usage.prompt_tokens, answered.usage.cached_tokens) == (317, 64)
    assert (failed.failure, failed.failure_detail) == ("HTTP 404", "Model not found")


def test_an_endpoint_that_counts_nothing_leaves_counts_out() -> None:
    metrics = {name: ANSWERED["metrics"][name] for name in ("time_to_first_token", "request_latency")}
    (outcome,) = load_generators.outcomes(said({**ANSWERED, "metrics": metrics}))
    assert outcome.usage is None
    assert outcome.failure is None


@pytest.mark.parametrize(
    "printed",
    ["", "Traceback", "records !!", said(ANSWERED)[:-60], said({}), said({"metadata": {}, "metrics": {}})],
    ids=["nothing", "no records", "no base64", "cut off", "empty record", "no times"],
)
def test_what_is_no_record_is_an_error(printed: str) -> None:
    with pytest.raises(UserError, match="records"):
        load_generators.outcomes(printed)


def test_no_requests_are_an_error() -> None:
    with pytest.raises(UserError, match="records are missing"):
        load_generators.outcomes(said())
