"""What is asked: within its bounds, at the stated rate and lengths, equal where the recorded prompts were."""

import json
from pathlib import Path

import pytest

from inference_blueprints.measure.benchmarking.benchmark import (
    Bounds,
    blocks_in_words,
    generate_requests,
    read_requests,
)
from inference_blueprints.spec.types import Workload
from inference_contracts.errors import UserError

WIDE = Bounds(seconds=600.0, requests=5000, context_length=100_000)


def trace_file(folder: Path, *requests: tuple[float, int, int, list[int]]) -> Path:
    path = folder / "trace.jsonl"
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    path.write_text("".join(json.dumps(dict(zip(names, each, strict=True))) + "\n" for each in requests))
    return path


def test_the_workload_is_asked_at_its_rate_and_lengths() -> None:
    workload = Workload(
        input_tokens=1000, output_tokens=50, shared_prefix_ratio=0.4, peak_requests_per_second=8.0
    )
    questions = generate_requests(workload, WIDE)
    last = questions.requests[-1].arrival_seconds
    assert len(questions.requests) / last == pytest.approx(8.0, rel=0.1)
    assert {request.output_tokens for request in questions.requests} == {50}
    assert {sum(block.tokens for block in request.blocks) for request in questions.requests} == {1000}
    first, second = questions.requests[0].blocks, questions.requests[1].blocks
    assert first[0] == second[0]
    assert first[0].tokens == 400
    assert first[1].identity != second[1].identity


def test_the_workload_is_asked_within_the_bounds() -> None:
    workload = Workload(input_tokens=1000, output_tokens=50, peak_requests_per_second=8.0)
    assert len(generate_requests(workload, Bounds(600.0, 10, 8192)).requests) == 10
    assert all(
        each.arrival_seconds < 2 for each in generate_requests(workload, Bounds(2.0, 5000, 8192)).requests
    )


def test_a_trace_keeps_its_times_lengths_and_sharing(tmp_path: Path) -> None:
    path = trace_file(tmp_path, (1000, 600, 7, [1, 2]), (1500, 1000, 9, [1, 3]), (4000, 512, 1, [4]))
    questions = read_requests(path, WIDE)
    assert [request.arrival_seconds for request in questions.requests] == [0.0, 0.5, 3.0]
    assert [request.output_tokens for request in questions.requests] == [7, 9, 1]
    assert [[block.tokens for block in request.blocks] for request in questions.requests] == [
        [512, 88],
        [512, 488],
        [512],
    ]
    assert questions.requests[0].blocks[0] == questions.requests[1].blocks[0]


def test_what_a_trace_has_beyond_the_bounds_is_left_out_and_said(tmp_path: Path) -> None:
    path = trace_file(
        tmp_path,
        (0, 600, 7, [1, 2]),
        (500, 5000, 9, list(range(10, 20))),
        (900, 10, 1, [4]),
        (90_000, 10, 1, [5]),
    )
    questions = read_requests(path, Bounds(10.0, 100, context_length=1000))
    assert [request.input_tokens for request in questions.requests] == [600, 10]
    assert "1 were left out: longer than 1,000 tokens" in " ".join(questions.notes)
    with pytest.raises(UserError, match=r"1 requests of its busiest 0\.1 s"):
        read_requests(path, Bounds(0.1, 100, context_length=1000))


@pytest.mark.parametrize(("tokens_per_word", "template"), [(1.0, 0), (1.7, 9), (2.53, 30)])
def test_words_give_the_wanted_tokens_and_equal_blocks_stay_equal(
    tokens_per_word: float, template: int
) -> None:
    workload = Workload(
        input_tokens=3000, output_tokens=50, shared_prefix_ratio=0.5, peak_requests_per_second=8.0
    )
    requests = blocks_in_words(
        generate_requests(workload, Bounds(5.0, 50, 8192)).requests, tokens_per_word, template
    )
    for request in requests:
        words = sum(block.tokens for block in request.blocks)
        assert words * tokens_per_word + template == pytest.approx(3000, abs=tokens_per_word)
    assert len({request.blocks[0] for request in requests}) == 1


def test_a_prompt_shorter_than_the_template_still_has_a_word() -> None:
    workload = Workload(input_tokens=1, output_tokens=5, peak_requests_per_second=8.0)
    requests = blocks_in_words(generate_requests(workload, Bounds(5.0, 5, 8192)).requests, 3.0, 20)
    assert all(sum(block.tokens for block in request.blocks) == 1 for request in requests)
    assert len({request.blocks for request in requests}) == 5
