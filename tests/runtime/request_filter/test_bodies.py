"""A body is passed on byte by byte, without what callers may not choose, or refused in OpenAI's form."""

from __future__ import annotations

import json

import pytest
from request_filter.body_check import CheckedBody, checked_body
from request_filter.refused_request import RefusedRequestError

import inference_catalog as catalog

PATH = "/v1/chat/completions"
LIMITS = catalog.request_limits("vllm")


def _checked(content: bytes, *allowed: str, path: str = PATH, kind: str = "") -> CheckedBody:
    return checked_body(content, path, kind, LIMITS, frozenset(allowed))


def test_a_plain_body_is_passed_on_as_it_is() -> None:
    """Red if bytes of a caller change, and with them numbers, or the cache's hashes of its prompt."""
    content = b'{"model": "m",  "temperature": 1.0, "messages": [{"content": "\\u00e9\\n"}]}'
    assert _checked(content) == CheckedBody(content, [])


def test_what_callers_may_not_choose_is_removed_and_named() -> None:
    """Red if a body pins a worker, raises a priority or has a worker read from another one's cache."""
    body = {"model": "\u00e9", "nvext": {"backend_instance_id": 1}, "priority": 9, "kv_transfer_params": {}}
    checked = _checked(json.dumps(body).encode())
    assert json.loads(checked.content) == {"model": "\u00e9"}
    assert checked.removed == ["kv_transfer_params", "nvext", "priority"]
    assert "nvext" in json.loads(_checked(json.dumps(body).encode(), "nvext").content)


REFUSED = {
    "beyond a bound": (b'{"allowed_token_ids": [' + b"1," * 1024 + b"1]}", "allowed_token_ids"),
    # One reader takes the first of two values, another the last.
    "a name twice": (b'{"n": 1, "n": 100000}', None),
    "a name twice, deeper": (b'{"a": {"b": 1, "b": 2}}', None),
    "not JSON": (b"{", None),
    "not an object": (b"[]", None),
    "a constant": (b'{"temperature": NaN}', None),
    "a number without end": (b'{"temperature": 1e999}', None),
    "a long whole number": (b'{"seed": ' + b"9" * 5000 + b"}", None),
    "not UTF-8": (b'{"model": "\xff"}', None),
    "deep": (b"[" * 100_000, None),
    # 64 MiB of these took 10 seconds, in which no other request went on, and 1.8 GiB.
    "millions of values": (b'{"messages": [' + b"[]," * 2_000_000 + b"[]]}", None),
    # Comparing each name with each other took 8 seconds for 30,000 of them, and hours for 3 million.
    "a name twice among many": (
        b"{" + b",".join(b'"%d":0' % (n % 200_000) for n in range(200_001)) + b"}",
        None,
    ),
    "a byte order mark": (b'\xef\xbb\xbf{"n": 1}', None),
    "UTF-16": ('{"n": 1}'.encode("utf-16"), None),
    "compressed": (b"\x1f\x8b\x08\x00", None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_body_gets_an_error_of_the_api(case: str) -> None:
    """Red if such a body reaches an engine, or a caller gets another form of error, or none."""
    content, param = REFUSED[case]
    with pytest.raises(RefusedRequestError) as refused:
        _checked(content)
    error = json.loads(refused.value.body)["error"]
    assert (refused.value.status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert error["message"]
    assert error["code"]


def test_forms_are_passed_on_only_where_the_api_takes_files() -> None:
    """Red if a caller avoids every check by naming another type of content."""
    kind = "multipart/form-data; boundary=b"
    assert _checked(b"--b", path="/v1/audio/transcriptions", kind=kind).content == b"--b"
    with pytest.raises(RefusedRequestError):
        _checked(b"--b", kind=kind)
