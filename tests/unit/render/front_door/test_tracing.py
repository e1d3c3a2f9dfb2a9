"""A real Envoy puts its span between the caller and the model, and callers cannot make its traces worse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.harness.trace_sink import Span, TraceSink, trace_sink
from inference_blueprints.render.front_door.places import UpstreamPlace
from tests.unit.render.front_door.door_process import CHAT, LOOPBACK, Door
from tests.unit.render.front_door.small_plans import small_plan

pytestmark = pytest.mark.clock

#: Low enough that no request of these tests is traced by chance, or was within the first 2^53 runs.
_RARELY = 1e-4
_TRACE, _CALLER = "ab" * 16, "cd" * 8
_FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])")


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, TraceSink]]:
    with trace_sink() as sink:
        door = Door(tmp_path_factory.mktemp("traced"), small_plan(trace_ratio=_RARELY))
        door.places = replace(door.places, traces=UpstreamPlace(LOOPBACK, sink.port))
        with door.running():
            yield door, sink


def passed_on(door: Door, headers: Mapping[str, str]) -> Mapping[str, str]:
    """Send a request and return the headers that reach the model."""
    assert door.ask("POST", CHAT, {"model": "m", "messages": []}, headers).status == 200
    return door.engine.seen[-1].headers


def spans_of(door: Door, sink: TraceSink, trace: str) -> list[Span]:
    """Wait for the spans of a trace: Envoy sends them after some seconds."""
    door.wait_until(lambda: len(sink.traces().get(trace, ())) > 1)
    return sink.traces()[trace]


def test_the_span_of_the_door_is_between_the_caller_and_the_model(traced: tuple[Door, TraceSink]) -> None:
    """Red if the model is told of the caller's span, or if a caller's decision does not hold."""
    door, sink = traced
    found = _FORM.fullmatch(passed_on(door, {"traceparent": f"00-{_TRACE}-{_CALLER}-01"})["traceparent"])
    assert found
    assert (found[1], found[3]) == (_TRACE, "1")
    span, policy = spans_of(door, sink, _TRACE)
    assert (span.service, span.parent, span.identity) == ("front-door", _CALLER, found[2])
    assert (policy.parent, policy.attributes["upstream_cluster"]) == (span.identity, "door-policy")
    assert span.attributes["http.status_code"] == "200"
    assert "good" not in str(span.attributes), "the caller's key is in its span"


def test_a_request_that_is_not_sampled_says_so_to_the_model(traced: tuple[Door, TraceSink]) -> None:
    """Red if a frontend would decide again: then a trace begins behind the door."""
    door, sink = traced
    own = _FORM.fullmatch(passed_on(door, {})["traceparent"])
    follows = _FORM.fullmatch(passed_on(door, {"traceparent": f"00-{'12' * 16}-{_CALLER}-00"})["traceparent"])
    assert own
    assert follows
    assert (own[3], follows[1], follows[3]) == ("0", "12" * 16, "0")
    assert not {own[1], follows[1]} & sink.traces().keys()


@pytest.mark.parametrize(
    "value",
    [
        "x",
        f"00-{_TRACE}-{_CALLER}-01" + "a" * 20_000,
        f"00-{'zz' * 16}-{_CALLER}-01",
        f"00-{_TRACE}-{_CALLER}",
    ],
    ids=["word", "long", "no digits", "short"],
)
def test_a_header_of_another_form_makes_no_span(traced: tuple[Door, TraceSink], value: str) -> None:
    """What is behind the door must ignore it too (W3C, "Trace Context", 3.2.2.3). Red if Envoy ends."""
    door, sink = traced
    before = {*sink.traces()}
    assert passed_on(door, {"traceparent": value})["traceparent"] == value
    assert {*sink.traces()} == before


@pytest.mark.parametrize("header", ["x-client-trace-id", "x-envoy-force-trace", "tracestate"])
def test_other_headers_ask_for_no_trace(traced: tuple[Door, TraceSink], header: str) -> None:
    own = _FORM.fullmatch(passed_on(traced[0], {header: "a=b"})["traceparent"])
    assert own
    assert own[3] == "0"


def test_notes_of_other_systems_are_neither_kept_nor_passed_on(traced: tuple[Door, TraceSink]) -> None:
    """Red if each span can hold as much as all headers of a request."""
    door, sink = traced
    trace = "34" * 16
    headers = {"traceparent": f"00-{trace}-{_CALLER}-01", "tracestate": "a=" + "b" * 20_000}
    assert not passed_on(door, headers).get("tracestate")
    [span, _] = spans_of(door, sink, trace)
    assert max(map(len, span.attributes.values())) < 200


def test_a_receiver_that_is_gone_delays_no_request(tmp_path: Path) -> None:
    door = Door(tmp_path, small_plan(trace_ratio=1.0))
    door.places = replace(door.places, traces=UpstreamPlace(LOOPBACK, 9))
    with door.running():
        for _ in range(20):
            found = _FORM.fullmatch(passed_on(door, {})["traceparent"])
            assert found
            assert found[3] == "1"


def test_without_traces_the_callers_header_passes_unchanged(tmp_path: Path) -> None:
    mine = {"traceparent": f"00-{_TRACE}-{_CALLER}-01", "tracestate": "a=b"}
    with Door(tmp_path, small_plan()).running() as door:
        assert mine.items() <= passed_on(door, mine).items()
