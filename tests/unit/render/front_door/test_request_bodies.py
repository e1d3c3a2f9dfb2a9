"""What Envoy reads in bodies and writes into them, with the real Envoy, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from inference_contracts import door_headers
from inference_contracts.request_headers import BATCH_HEADERS, SESSION_HEADER
from tests.unit.render.front_door.door_process import CHAT, Door, running_door

pytestmark = pytest.mark.clock

_USAGE = {"include_usage": True, "continuous_usage_stats": True}
#: A body whose numbers, names and order another reader of JSON would write differently.
_EXACT = (
    '{"seed": 1152921504606846977, "max_tokens" : 100000,\n "temperature":1.0, "model": "public\\/model",'
    ' "tools":[{"zeta":1,"alpha":{"c":1e400,"b":"\\u00e9\\\\","a":[]}}], "messages":[{"content":"{'
    '\\"model\\":\\"x\\"}]"}]'
)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running_door(tmp_path_factory.mktemp("bodies")) as found:
        yield found


def test_only_the_model_and_the_options_of_a_stream_change(door: Door) -> None:
    """Red if the body is written anew: 1e+05, a rounded seed, names in another order."""
    door.told(_EXACT + "}")
    sent = door.engine.seen[-1]
    assert sent.body.decode() == (_EXACT + "}").replace('"public\\/model"', '"served-model"')
    assert sent.headers["content-length"] == str(len(sent.body))
    door.told(_EXACT + ', "stream":true}')
    asked = door.engine.seen[-1].body.decode()
    assert json.loads(asked)["stream_options"] == _USAGE
    own = asked.replace('"stream_options":{"include_usage":true,"continuous_usage_stats":true},', "", 1)
    assert own == (_EXACT + ', "stream":true}').replace('"public\\/model"', '"served-model"')


@pytest.mark.parametrize("options", ["null", "{}", '{"include_usage":false,"x":{"model":"y"}}', " [1 , 2 ] "])
def test_the_options_of_a_stream_are_the_doors(door: Door, options: str) -> None:
    """Red if a caller can end the counting of a stream."""
    door.told(f'{{"stream": true, "stream_options":{options}, "model":"m"}}')
    assert json.loads(door.engine.seen[-1].body) == {
        "stream": True,
        "stream_options": _USAGE,
        "model": "served-model",
    }


@pytest.mark.parametrize("end", ["\\\\", '\\"', '\\\\\\"', '"\n"', '\\" , \\" }', '", "\\\\'])
def test_texts_end_at_their_quotes(door: Door, end: str) -> None:
    """Red if a quote behind a backslash ends a text, or one behind two backslashes does not."""
    other = f"x {end} y {end}"
    facts = door.told({"first": other, end: {other: [other]}, "model": "m", "max_tokens": 7, "z": end})
    assert (facts["model"], facts["max-tokens"]) == ("m", "7")
    answer = door.ask("POST", CHAT, b'{"model": "m", "x": "a\\"}')
    assert (answer.status, answer.code) == (400, "bad_json")


def test_the_policy_gets_what_a_body_may_cost(door: Door) -> None:
    body = {
        "model": "org/model:v1",
        "stream": True,
        "n": 3,
        "best_of": 4,
        "max_tokens": 100000,
        "max_completion_tokens": 999999999,
        "max_output_tokens": 1,
        "prompt_cache_key": "session 1",
        "user": "me",
        "prompt": ["a", [1, 2], ["b"], "c"],
        "previous_response_id": "resp_1",
    }
    facts = door.told(body)
    size = str(len(json.dumps(body)))
    assert facts == {
        "model": "org/model:v1",
        "stream": "true",
        "n": "16",
        "max-tokens": "999999999",
        "cache-key": "session 1",
        "user": "me",
        "bytes": size,
        "stored": "true",
    }
    assert door.told({"model": "m", "max_tokens": None, "stream": None, "prompt": [1, 2, 3]}) == {
        "model": "m",
        "stream": "false",
        "n": "1",
        "bytes": str(len('{"model": "m", "max_tokens": null, "stream": null, "prompt": [1, 2, 3]}')),
    }


_DATA = "data:image/png;base64," + "A" * 100_000
_TEXT = "data:" + "A" * 1000


@pytest.mark.parametrize(
    ("body", "images", "data"),
    [
        ({"messages": [{"content": [{"type": "image_url", "image_url": {"url": _DATA}}]}]}, 1, _DATA),
        ({"messages": [{"content": [{"image_url": {"url": "https://a/b.png"}}]}]}, 1, ""),
        ({"input": [{"content": [{"type": "input_image", "image_url": _DATA}]}]}, 1, _DATA),
        ({"messages": [{"content": [{"type": "image", "source": {"data": "AAAA"}}]}]}, 1, ""),
        ({"messages": [{"content": [{"video_url": {"url": "u"}}, {"input_audio": {"data": "x"}}]}]}, 2, ""),
        # No image: text is charged as text, whatever it begins with.
        ({"messages": [{"content": _TEXT}]}, 0, ""),
        ({"tools": [{"function": {"parameters": {"url": _TEXT}}}]}, 0, ""),
        ({"metadata": {"image_urls": "x"}}, 0, ""),
        ({"messages": [{"content": [{"type": "file", "file": {"url": _TEXT}}]}]}, 0, ""),
        # What a tool is called with is text for the model, whatever its fields are called.
        ({"messages": [{"content": [{"type": "tool_use", "input": {"url": _TEXT}}]}]}, 0, ""),
        ({"messages": [{"content": [{"type": "tool_use", "input": {"image_url": _TEXT}}]}]}, 1, ""),
        ({"messages": [{"content": [{"input": {"image_url": {"url": _TEXT}}}]}]}, 1, ""),
        ({"messages": [{"tool_calls": [{"function": {"image_url": _TEXT}}]}]}, 1, ""),
    ],
)
def test_images_are_counted_and_their_bytes_are_not(
    door: Door, body: dict[str, Any], images: int, data: str
) -> None:
    facts = door.told({"model": "m", **body})
    # Definitions of tools count four times.
    size = len(json.dumps({"model": "m", **body})) + 3 * len(json.dumps(body.get("tools", "")).strip('"'))
    assert (facts.get("images", "0"), facts["bytes"]) == (str(images), str(size - len(data)))
    assert int(facts.get("media-bytes", "0")) == len(data)


@pytest.mark.parametrize(
    "body",
    [
        "[1]",
        '"x"',
        "",
        " ",
        "nonsense",
        '{"model":"m"',
        '{"model":"m"}{"model":"n"}',
        '{"model":"m"}]',
        '{"model":"m","x":[1}}',
        '{"model":"m","x":"\\"}',
        # One reader takes the first value, another the last.
        '{"model":"m","model":"n"}',
        '{"model":"m","max_tokens":1,"max_tokens":100000}',
        '{"model":"m","stream":false,"stream":true}',
        # The same name for a reader that decodes escapes.
        '{"model":"m","\\u006dax_tokens":100000}',
        '{"\\u006Dodel":"m"}',
    ],
)
def test_a_body_that_two_readers_could_understand_differently_is_refused(door: Door, body: str) -> None:
    asked = len(door.policy.seen)
    answer = door.ask("POST", CHAT, body.encode())
    assert answer.status == 400, answer
    assert answer.code in {"bad_json", "missing_required_parameter"}
    assert len(door.policy.seen) == asked


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("max_tokens", value) for value in ('"5"', "-1", "1.5", "1e9", "true", "[5]", "1000000000")),
        *(("n", value) for value in ("0", '"1"', "1.0")),
        *(("stream", value) for value in ("1", '"true"', "[]", "True")),
    ],
)
def test_a_number_that_readers_take_differently_is_refused(door: Door, field: str, value: str) -> None:
    """vLLM takes "5" as 5 and 1 as true, Dynamo's frontend does not: the door reserves for one number."""
    answer = door.ask("POST", CHAT, f'{{"model":"m","{field}":{value}}}'.encode())
    assert (answer.status, answer.code) == (400, "invalid_value")
    assert answer.document["error"]["param"] == field


@pytest.mark.parametrize(
    "name",
    [
        *("a\\r\\nx-door-team: evil", "a\\u0000b", "\\u0061", "é", "a\\nb", "", " m", "x" * 600),
        "a\\\\b",
    ],
)
def test_a_name_that_is_no_header_names_no_model(door: Door, name: str) -> None:
    asked = len(door.policy.seen)
    answer = door.ask("POST", CHAT, f'{{"model":"{name}"}}'.encode())
    assert answer.status in {400, 404}
    assert len(door.policy.seen) == asked


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/v1/models", "two", "door-policy", "http://x/", "%2e%2e"]
)
def test_a_name_that_is_a_path_or_a_cluster_stays_a_name(door: Door, name: str) -> None:
    """Red if a model's name becomes a path or a cluster."""
    assert door.told({"model": name})["model"] == name
    assert door.engine.seen[-1].path == CHAT


def test_the_shape_of_a_request_is_checked_before_its_body(door: Door) -> None:
    asked = len(door.policy.seen)
    body = b'{"model":"m"}'
    cases = {
        415: {"content-type": "text/plain"},
        413: {"content-length": "999999999"},
        411: {"transfer-encoding": "chunked"},
    }
    found = {}
    for status, headers in cases.items():
        connection = door.connection()
        connection.putrequest("POST", CHAT)
        merged = {"authorization": "Bearer good", "content-type": "application/json", **headers}
        for name, value in merged.items():
            connection.putheader(name, value)
        if status == 415:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders()
        if status == 415:
            connection.send(body)
        answer = connection.getresponse()
        found[status] = (answer.status, json.loads(answer.read())["error"]["type"])
        connection.close()
    assert found == {status: (status, "invalid_request_error") for status in cases}
    zipped = door.ask("POST", CHAT, body, {"content-encoding": "gzip"})
    nobody = door.ask("POST", CHAT, body, {"authorization": ""})
    assert (zipped.status, nobody.status, len(door.policy.seen)) == (415, 401, asked)


def test_headers_of_callers_say_nothing_to_the_policy_or_the_engine(door: Door) -> None:
    forged = {
        "x-door-target": "two",
        "X-Door-Team": "evil",
        "x-door-token": "e30",
        "x-door-reservation": "other",
        "x-request-id": "11111111-1111-4111-8111-111111111111",
        "x-envoy-retry-on": "5xx",
        "x-envoy-max-retries": "9",
        "x-envoy-upstream-rq-timeout-ms": "1",
        "x-dynamo-worker-instance-id": "7",
        "x-dynamo-request-strict-priority": "100",
        "x-dynamo-request-priority": "100",
        "x-gateway-destination-endpoint": "10.0.0.1",
        "cookie": "a=b",
        "accept-encoding": "gzip",
        "expect": "anything",
    }
    harmless = {SESSION_HEADER: "session"}
    answer = door.ask("POST", CHAT, {"model": "m"}, {**forged, **harmless})
    assert answer.status == 200
    policy, engine = door.policy.seen[-1].headers, door.engine.seen[-1].headers
    own = {"x-door-model", "x-door-stream", "x-door-n", "x-door-bytes", "x-door-address"}
    assert {name for name in policy if name.startswith(door_headers.PREFIX)} == own
    kept = {name.lower() for name in forged} & engine.keys()
    assert kept == {"x-request-id"}
    assert engine["x-request-id"] == policy["x-request-id"] == answer.headers["x-request-id"]
    assert engine["x-request-id"] != forged["x-request-id"]
    assert (engine[SESSION_HEADER], policy[SESSION_HEADER]) == ("session", "session")
    assert "authorization" not in engine
    assert not [name for name in engine if name.startswith((door_headers.PREFIX, "x-envoy-"))]
    assert door.line(answer.headers["x-request-id"])["callersId"] == forged["x-request-id"]


def test_batch_lowers_its_own_priority(door: Door) -> None:
    assert door.ask("POST", CHAT, {"model": "m"}, BATCH_HEADERS).status == 200
    assert BATCH_HEADERS.items() <= door.engine.seen[-1].headers.items()
    raised = dict.fromkeys(BATCH_HEADERS, "9")
    door.ask("POST", CHAT, {"model": "m"}, raised)
    assert not BATCH_HEADERS.keys() & door.engine.seen[-1].headers.keys()


def test_a_long_prompt_with_images_gets_through(door: Door) -> None:
    """A body of almost the largest size, much larger than Envoy's own limit of a megabyte."""
    images = [{"type": "image_url", "image_url": {"url": _DATA}} for _ in range(9)]
    text = 'The quick brown fox said "hello"\n' * 3000
    body = {"model": "m", "messages": [{"content": [*images, {"type": "text", "text": text}]}]}
    facts = door.told(body)
    assert facts["images"] == "9"
    assert len(door.engine.seen[-1].body) > 1_000_000
