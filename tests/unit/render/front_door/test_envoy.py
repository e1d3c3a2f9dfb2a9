"""A real Envoy takes the configuration, and a request goes from a caller to the cluster of the decision."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import replace

import pytest

from inference_contracts import door_headers
from tests.unit.render.front_door.door_process import (
    CHAT,
    LOOPBACK,
    PATIENCE_SECONDS,
    Door,
    echoed,
    hang_up,
    reply,
    running_door,
)

pytestmark = pytest.mark.clock


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running_door(tmp_path_factory.mktemp("door")) as found:
        yield found


def test_a_request_reaches_the_cluster_and_its_line_settles_it(door: Door) -> None:
    answer = door.ask("POST", CHAT, {"model": "public/model", "messages": [], "max_tokens": 5})
    assert answer.status == 200
    asked = door.policy.seen[-1].headers
    assert (asked["x-door-model"], asked["x-door-max-tokens"]) == ("public/model", "5")
    assert asked["x-door-bytes"] == str(len(door.engine.seen[-1].body))
    line = door.line(answer.headers["x-request-id"])
    settled = {name: line[name] for name in ("in", "out", "status", "team", "reservation", "reserved")}
    assert settled == {
        "in": 7,
        "out": 3,
        "status": 200,
        "team": "search",
        "reservation": answer.headers["x-request-id"],
        "reserved": "1000",
    }


def test_a_refusal_of_the_policy_reaches_the_caller(door: Door) -> None:
    before = len(door.engine.seen)
    answer = door.ask("POST", CHAT, {"model": "m"}, {"authorization": "Bearer bad"})
    assert (answer.status, answer.code, len(door.engine.seen)) == (401, "invalid_api_key", before)


def test_callers_cannot_choose_the_address_by_which_wrong_keys_are_counted(door: Door) -> None:
    """A header that a caller forges, so that each guess comes from another address."""

    def address() -> str:
        forged = {"x-forwarded-for": "10.9.9.9, 10.1.1.1", "x-door-address": "10.8.8.8"}
        door.ask("POST", CHAT, {"model": "m"}, forged)
        return door.policy.seen[-1].headers["x-door-address"]

    assert address() == "127.0.0.1"
    # Behind a load balancer, which adds the address of its caller.
    door.places = replace(door.places, trusted_hops=1)
    door.write(door.plan)
    door.wait_until(lambda: address() == "10.1.1.1")


def test_prometheus_reads_metrics_and_nothing_else(door: Door) -> None:
    """Red if the administration of Envoy, or another path of the policy, can be reached over the network."""
    asked = len(door.policy.seen)
    found = {}
    others = ("/quitquitquit", "/ready", "/config_dump", "/metrics/../config_dump")
    for path in ("/metrics", "/metrics/envoy", *others):
        connection = http.client.HTTPConnection(LOOPBACK, door.metrics, timeout=PATIENCE_SECONDS)
        connection.request("GET", path)
        answer = connection.getresponse()
        found[path] = answer.status
        body = answer.read()
        if path == "/metrics/envoy":
            assert b"envoy_http_downstream_rq_total" in body
        connection.close()
    assert [path for path, status in found.items() if status != 404] == ["/metrics", "/metrics/envoy"]
    assert [each.path for each in door.policy.seen[asked:]] == ["/metrics"]


def test_the_load_balancer_asks_the_policy_whether_it_is_ready(door: Door) -> None:
    usual = door.policy.answer
    door.policy.answer = lambda handler, seen: reply(handler, 200 if seen.path == "/ready" else 401, b"ready")
    ready = door.ask("GET", "/ready", headers={"authorization": ""})
    door.administration("POST", "/healthcheck/fail")
    ends = door.ask("GET", "/ready")
    door.administration("POST", "/healthcheck/ok")
    door.policy.answer = usual
    assert (ready.status, ready.body, ends.status) == (200, b"ready", 503)


@pytest.mark.parametrize("path", ["/v1/files", "/v1/batches/batch_1?after=x", "/v1/uploads"])
def test_files_and_batches_go_to_the_batch_api_as_they_are(door: Door, path: str) -> None:
    """Its own authorizer checks the caller: nothing of the request may be lost."""
    asked = len(door.policy.seen)
    form = {"content-type": "multipart/form-data; boundary=a"}
    headers = {"authorization": "Bearer token", **form, "x-door-team": "x"}
    assert door.ask("POST", path, b"--a", headers).status == 200
    sent = door.engine.seen[-1]
    assert (sent.path, sent.body) == (f"/prod{path}", b"--a")
    assert (sent.headers["host"], sent.headers["authorization"]) == ("batch.example.com", "Bearer token")
    assert "x-door-team" not in sent.headers
    assert len(door.policy.seen) == asked


def test_a_batch_api_that_ends_with_a_request_is_no_model(door: Door) -> None:
    """Red if a client reads that it may send an upload again, or that a model was asked."""
    door.engine.answer = lambda handler, _: hang_up(handler)
    answer = door.ask("POST", "/v1/files?purpose=batch", b"{}", {"content-type": "application/json"})
    door.engine.answer = echoed
    assert (answer.status, answer.code) == (503, "batch_unavailable")
    assert "retry-after" not in answer.headers
    assert "look whether the request was done" in str(answer.body)


def test_the_policy_lists_models_to_the_caller_it_knows(door: Door) -> None:
    usual = door.policy.answer
    door.policy.answer = lambda handler, seen: reply(
        handler, 200, seen.path.encode(), {door_headers.TARGET: "door-policy", door_headers.TEAM: "search"}
    )
    answer = door.ask("GET", "/v1/models/qwen/qwen3-8b", headers={"x-door-team": "forged"})
    door.policy.answer = usual
    assert (answer.status, answer.body) == (200, b"/v1/models/qwen/qwen3-8b")
    decided, listed = door.policy.seen[-2:]
    assert decided.path == "/decide/v1/models/qwen/qwen3-8b"
    assert (listed.headers["x-door-team"], listed.headers["authorization"]) == ("search", "Bearer good")
    assert "x-door-team" not in decided.headers


def test_an_answer_with_images_is_larger_than_what_envoy_keeps(door: Door) -> None:
    """Red if Envoy waits for the whole answer: it would answer 500."""
    images = b'{"data":[{"b64_json":"' + b"A" * (65 * 1024 * 1024) + b'"}]}'
    door.engine.answer = lambda handler, _: reply(handler, 200, images, {"content-type": "application/json"})
    answer = door.ask("POST", "/v1/images/generations", {"model": "m", "n": 2})
    door.engine.answer = echoed
    assert (answer.status, len(answer.body)) == (200, len(images))
    assert door.line(answer.headers["x-request-id"])["choices"] == "2"


def test_a_request_goes_to_another_server_only_if_none_has_begun_with_it(door: Door) -> None:
    """Red if a model answers twice for one reservation."""
    before = len(door.engine.seen)
    door.engine.answer = lambda handler, _: reply(handler, 503, b"{}")
    failed = door.ask("POST", CHAT, {"model": "m"})
    door.engine.answer = lambda handler, _: hang_up(handler)
    reset = door.ask("POST", CHAT, {"model": "m"})
    door.engine.answer = echoed
    assert (failed.status, reset.status, len(door.engine.seen) - before) == (503, 503, 2)
    assert reset.code == "model_unavailable"
    # By this, batch tells a server that died with the request from one that cannot be reached.
    assert "retry-after" not in reset.headers
