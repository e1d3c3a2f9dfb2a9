"""What a decision consists of: the request, its most cost, its limits, and what a line of the log costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from front_door.asked_request import AskedRequest, RefusedError, read_request
from front_door.costs import TEMPLATE_TOKENS, CostBound, bound_of
from front_door.ledger import Reservation
from front_door.ledger_counters import Budgets
from front_door.log_line import cost_of, read_line
from front_door.reservations import Promise, Signer

from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_ledger import windows_at
from tests.runtime.front_door.policy_process import CHAT, PRICES, a_configuration, a_model

PROMISE = Promise(
    "abc",
    Reservation("g", 1_700_000_000, 1_690_000_000, 28_333_333),
    Reservation("-", 1_700_000_000, 1_690_000_000, 0),
    *(356 * 200 + 100 * 800, 356, 100, 0),
    PRICES,
)


def headers(**changed: str | None) -> Mapping[bytes, bytes]:
    plain = {
        "x-door-model": "m",
        "x-door-bytes": "100",
        **{k.replace("_", "-"): v for k, v in changed.items()},
    }
    return {name.encode(): value.encode() for name, value in plain.items() if value is not None}


def request(**changed: str | None) -> AskedRequest:
    return read_request(CHAT, headers(**changed))


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"x_door_model": None}, 400, "missing_model"),
        ({"x_door_model": "null"}, 400, "missing_model"),
        ({"x_door_bytes": None}, 411, "length_required"),
        ({"x_door_bytes": "-"}, 411, "length_required"),
        ({"x_door_bytes": "9" * 13}, 411, "length_required"),
        ({"x_door_max_tokens": "-1"}, 400, "invalid_value"),
        ({"x_door_max_tokens": "1.5"}, 400, "invalid_value"),
        ({"x_door_max_tokens": "nan"}, 400, "invalid_value"),
        ({"x_door_max_tokens": "1e400"}, 400, "invalid_value"),
        ({"x_door_n": "0"}, 400, "invalid_value"),
        ({"openai_project": "a b"}, 400, "invalid_project"),
        ({"openai_project": "../x"}, 400, "invalid_project"),
    ],
)
def test_a_request_without_a_bound_is_refused(changed: dict[str, str], status: int, code: str) -> None:
    """Red if a field that cannot be read counts as none: its cost would have no bound."""
    with pytest.raises(RefusedError) as refused:
        request(**changed)
    assert (refused.value.refusal.status, refused.value.refusal.code) == (status, code)
    error = json.loads(refused.value.refusal.body())["error"]
    assert set(error) == {"message", "type", "param", "code"}


def test_a_maximum_may_have_an_exponent_or_be_missing() -> None:
    """Red if Envoy's 1e+05 is no number."""
    assert request(x_door_max_tokens="1e+05").output_tokens == 100_000
    assert request().output_tokens is None
    assert request(x_door_max_tokens="null").output_tokens is None


def test_a_conversation_is_known_by_its_session_then_its_cache_key_then_its_user() -> None:
    """Red if a session's requests get different targets because another field changes."""
    all_three = {"x_dynamo_session_id": "s", "x_door_cache_key": "c", "x_door_user": "u"}
    assert request(**all_three).conversation == "s"
    assert request(**{**all_three, "x_dynamo_session_id": None}).conversation == "c"
    assert request(x_door_user="u").conversation == "u"
    assert not request().conversation


@pytest.mark.parametrize(
    ("path", "changed", "bound"),
    [
        (CHAT, {}, CostBound(100 + TEMPLATE_TOKENS, 100, 0)),
        (CHAT, {"x_door_max_tokens": "7", "x_door_n": "3"}, CostBound(100 + TEMPLATE_TOKENS, 21, 0)),
        (CHAT, {"x_door_max_tokens": "999999"}, CostBound(100 + TEMPLATE_TOKENS, 8192, 0)),
        (CHAT, {"x_door_bytes": "5000000", "x_door_max_tokens": "100"}, CostBound(8192, 100, 0)),
        # Nothing is written that may not fit the context, so the answer may have all of it.
        (CHAT, {"x_door_bytes": "5000000"}, CostBound(8192, 8192, 0)),
        (CHAT, {"x_door_images": "2"}, CostBound(100 + TEMPLATE_TOKENS + 2000, 100, 0)),
        # Engines take no limit from 0: the answer ends with the context.
        (CHAT, {"x_door_max_tokens": "0"}, CostBound(100 + TEMPLATE_TOKENS, 8192, 0)),
        # Several prompts, each with the whole context.
        ("/v1/completions", {"x_door_bytes": "5000000", "x_door_n": "3"}, CostBound(3 * 8192, 3 * 8192, 0)),
        ("/v1/completions", {"x_door_n": "3"}, CostBound(100 + TEMPLATE_TOKENS, 300, 0)),
        ("/v1/responses", {"x_door_stored": "true"}, CostBound(8192, 8192, 0)),
        # Many inputs, each with the whole context: no limit of the model bounds their sum.
        ("/v1/embeddings", {"x_door_bytes": "5000000"}, CostBound(5_000_000 + TEMPLATE_TOKENS, 0, 0)),
        ("/v1/images/generations", {"x_door_n": "4"}, CostBound(100, 0, 4)),
    ],
)
def test_the_most_that_a_request_uses(path: str, changed: dict[str, str], bound: CostBound) -> None:
    """Red if a kind of request could use more than is reserved for it."""
    model = a_model(image_tokens=1000)
    assert bound_of(read_request(path, headers(**changed)), model)[0] == bound


@pytest.mark.parametrize(
    ("path", "changed", "written"),
    [
        (CHAT, {}, 100),
        ("/v1/completions", {"x_door_n": "3"}, 100),
        ("/v1/responses", {}, 100),
        ("/v1/messages", {}, 100),
        # The largest prompt that fits beside it, and one more byte: the engine would refuse the request.
        (CHAT, {"x_door_bytes": str(8192 - 100 - TEMPLATE_TOKENS)}, 100),
        (CHAT, {"x_door_bytes": str(8193 - 100 - TEMPLATE_TOKENS)}, None),
        (CHAT, {"x_door_images": "8"}, None),
        (CHAT, {"x_door_stored": "true"}, None),
        # Stated, or unclear.
        (CHAT, {"x_door_max_tokens": "5"}, None),
        (CHAT, {"x_door_max_tokens": "0"}, None),
        # No answer of tokens.
        ("/v1/embeddings", {}, None),
        ("/v1/images/generations", {}, None),
    ],
)
def test_a_maximum_is_written_only_where_none_is_stated_and_it_fits(
    path: str, changed: dict[str, str], written: int | None
) -> None:
    """Red if an answer may be longer than was reserved, or a request is refused that was not before."""
    assert bound_of(read_request(path, headers(**changed)), a_model(image_tokens=1000))[1] == written


def test_the_context_is_that_of_the_target() -> None:
    """Red if a prompt of a target with a longer context is reserved as one that the shortest takes."""
    asked = read_request(CHAT, headers(x_door_bytes="5000000", x_door_max_tokens="20000"))
    assert bound_of(asked, a_model(), 32768)[0] == CostBound(32768, 20000, 0)
    assert bound_of(asked, a_model())[0] == CostBound(8192, 8192, 0)
    # Nobody has stated the longest answer, so none is cut where the shortest context would cut it.
    whole = a_model(default_output_tokens=8192)
    assert bound_of(request(), whole, 32768) == (CostBound(100 + TEMPLATE_TOKENS, 32768, 0), None)


def test_an_answer_that_ends_with_the_context_writes_nothing() -> None:
    """A model whose default is its context cuts no answer."""
    bound, written = bound_of(request(), a_model(default_output_tokens=8192))
    assert (bound.output_tokens, written) == (8192, None)


def test_images_are_text_for_a_model_that_reads_none() -> None:
    """Red if data URLs are free: a chat template may write them into the prompt."""
    asked = read_request(CHAT, headers(x_door_images="1", x_door_media_bytes="5000"))
    assert bound_of(asked, a_model())[0].input_tokens == 100 + TEMPLATE_TOKENS + 5000
    assert bound_of(asked, a_model(image_tokens=70))[0].input_tokens == 100 + TEMPLATE_TOKENS + 70


ENDED = {"status": 200, "upstream": "10.0.0.1:8000", "path": CHAT, "stream": "true", "sent": 6400}


@pytest.mark.parametrize(
    ("facts", "tokens", "basis"),
    [
        ({"in": 12, "out": 5}, (12, 5), "usage"),
        ({"in": 12, "out": 5, "flags": "DC"}, (12, 5), "cut"),
        ({"in": 12, "out": 5, "flags": "UC,UPE"}, (12, 5), "cut"),
        # Each event has the usage of one of several answers.
        ({"in": 12, "out": 5, "flags": "DC", "choices": "3", "sent": 640}, (12, 15), "cut"),
        ({"in": 12, "out": 1, "flags": "DC", "choices": "3", "sent": 1280}, (12, 20), "cut"),
        ({"in": 12, "out": 90, "flags": "DC", "choices": "3"}, (12, 100), "cut"),
        (
            {"in": 12, "out": 5, "flags": "DC", "choices": "3", "sent": 640, "path": "/v1/completions"},
            (356, 15),
            "cut",
        ),
        ({"in": 12, "out": 15, "choices": "3"}, (12, 15), "usage"),
        # Cut without usage: the prompt, and what its bytes can hold.
        ({"flags": "DC"}, (356, 100), "cut"),
        ({"flags": "DC", "sent": 640}, (356, 10), "cut"),
        ({"flags": "DC", "sent": 0, "status": 0}, (356, 0), "cut"),
        # Not a stream: the model has worked, and the caller may have read it all.
        ({"flags": "DC", "stream": "false", "status": 0}, (356, 100), "reservation"),
        ({}, (356, 100), "reservation"),
        ({"status": 503, "flags": "UF"}, (0, 0), "none"),
        ({"status": 400}, (0, 0), "none"),
        # The model has written more than Envoy holds.
        (
            {"status": 500, "details": "response_payload_too_large", "stream": "false"},
            (356, 100),
            "reservation",
        ),
        # It never reached a model.
        ({"status": 0, "flags": "DC", "upstream": None}, (0, 0), "none"),
        ({"status": 429, "upstream": "-"}, (0, 0), "none"),
        # An engine that counts nonsense has counted nothing.
        ({"in": -5, "out": "x"}, (356, 100), "reservation"),
    ],
)
def test_what_an_ended_request_costs(facts: dict[str, Any], tokens: tuple[int, int], basis: str) -> None:
    """Red if a cut answer is free, or an error is not."""
    cost = cost_of({**ENDED, **facts}, PROMISE)
    assert (cost.input_tokens, cost.output_tokens, cost.basis) == (*tokens, basis)
    assert cost.nano == tokens[0] * 200 + tokens[1] * 800


def test_images_cost_by_their_number() -> None:
    """Red if a generated image is free because its answer has no tokens."""
    promise = replace(
        PROMISE, images=4, input_tokens=100, output_tokens=0, prices=replace(PRICES, image=10**7)
    )
    assert cost_of({**ENDED, "path": "/v1/images/generations", "stream": "false"}, promise).nano == (
        100 * 200 + 4 * 10**7
    )


def test_only_what_this_replica_has_signed_is_settled() -> None:
    """Red if somebody who can write a line can charge a team, or free a reservation."""
    signer = Signer(b"k" * 32)
    header = signer.write(PROMISE)
    assert signer.read(header) == PROMISE
    line = {**ENDED, "reservation": header}
    assert read_line(json.dumps(line).encode(), signer)
    forged = header.replace(f".{PROMISE.nano}.", ".1.")
    for wrong in (forged, header[:-1], "", "a.b.c", Signer(b"o" * 32).write(PROMISE)):
        assert read_line(json.dumps({**line, "reservation": wrong}).encode(), signer) is None
    for content in (b"", b"{", b"[]", b'{"reservation": 5}', b"\xff\xfe", json.dumps(line).encode()[:-3]):
        assert read_line(content, signer) is None


def test_days_and_months_are_those_of_the_time_zone() -> None:
    """Red if a day has always 24 hours, or begins at midnight of another zone."""
    zone = ZoneInfo("Europe/Berlin")

    def time(*parts: int) -> int:
        return int(datetime(*parts, tzinfo=UTC).timestamp())  # type: ignore[arg-type, misc]

    found = windows_at(time(2026, 10, 25, 12), zone)  # the clock goes back: 25 hours
    assert (found.day, found.day_end) == (time(2026, 10, 24, 22), time(2026, 10, 25, 23))
    assert (found.month, found.month_end) == (time(2026, 9, 30, 22), time(2026, 10, 31, 23))
    assert windows_at(time(2026, 12, 31, 23), zone).month == time(2026, 12, 31, 23)
    assert (
        windows_at(time(2026, 3, 29, 12), zone).day_end - windows_at(time(2026, 3, 29, 12), zone).day
        == 23 * 3600
    )


@pytest.mark.parametrize(
    ("facts", "is_full"),
    [
        ({"status": 529}, True),
        ({"status": 429}, True),
        ({"status": 503}, True),
        ({"status": 503, "upstream": "-", "retryAfter": "2"}, True),
        # The filter beside the entry point refuses one request that has ended workers.
        ({"status": 503, "retryAfter": "120"}, False),
        ({"status": 500}, False),
        ({"status": 200}, False),
    ],
)
def test_one_refused_request_does_not_close_a_target(facts: dict[str, Any], is_full: bool) -> None:  # noqa: FBT001
    """Red if whoever sends what ends workers makes the door refuse the requests of all others."""
    line = {"reservation": Signer(b"k" * 32).write(PROMISE), "upstream": "10.0.0.1:8000", **facts}
    ended = read_line(json.dumps(line).encode(), Signer(b"k" * 32))
    assert ended is not None
    assert ended.says_full == is_full


def test_each_counter_has_the_strictest_of_its_limits() -> None:
    """Red if a second budget loosens the first, if `*` is no limit for a key, or a key's own one is lost."""
    budgets = Budgets(
        a_configuration(
            DoorBudget("team", "red", nano_per_day=5),
            DoorBudget("team", "red", nano_per_day=9, nano_per_month=50),
            DoorBudget("key", "*", requests_per_minute=10),
            DoorBudget("project", "red/*", tokens_per_minute=7, enforce="after"),
        )
    )
    slot = budgets.of_caller("red", "p", "k", DoorBudget("key", "k", nano_per_month=3))
    team, project, key = slot.counters
    assert team.before.as_words() == (5, 50, -1, -1, -1)
    assert project.after.as_words() == (-1, -1, -1, 7, -1)
    assert key.before.as_words() == (-1, 3, 10, -1, -1)
    assert slot.keys[2:] == ["door:{red}", "door:{red}:p:p", "door:{red}:k:k"]
    assert slot.reserves
    assert budgets.limits("door:{red}")
    assert budgets.limits("door:{red}:k:other")
    assert not budgets.limits("door:{blue}")
    # A team without a budget of projects does not count those that callers invent.
    assert len(budgets.of_caller("blue", "p", None).counters) == 1
    assert not budgets.of_caller("blue", "p", None).reserves
