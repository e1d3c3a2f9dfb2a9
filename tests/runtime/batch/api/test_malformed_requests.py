"""Whatever is sent, the answer is no failure of the platform and has the shape of the OpenAI API."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batch.api.handler import build
from batch.jobs.settings import BatchPlatform
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import proxy_event
from tests.runtime.batch.api.requesting import BOUNDARY, Answer, Api, form

MANY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
IDENTIFIERS = st.one_of(
    st.sampled_from(["file-", "batch_", "upload_"]).flatmap(
        lambda start: st.text("0123456789abcdef", min_size=31, max_size=33).map(lambda end: start + end)
    ),
    ANY_TEXT.filter(bool),
)
PATHS = st.one_of(
    st.sampled_from(["/v1/files", "/v1/uploads", "/v1/batches", "/iam/v1/files", "/iam", "", "//v1//files"]),
    st.builds(
        "/v1/{}/{}{}".format,
        st.sampled_from(["files", "uploads", "batches"]),
        IDENTIFIERS,
        st.sampled_from(["", "/", "/content", "/parts", "/complete", "/cancel"]),
    ),
    ANY_TEXT,
)
METHODS = st.sampled_from(["GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "get"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), ANY_TEXT)
FIELDS = [
    "input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after", "bytes", "filename",
    "mime_type", "purpose", "expires_after", "part_ids", "md5", "queue", "priority", "budget_usd",
]  # fmt: skip
VALUES = st.one_of(
    SCALARS,
    st.sampled_from(["/v1/chat/completions", "24h", "batch", "9" * 4000, 1e308, 10**400, -0.0]),
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(FIELDS) | ANY_TEXT, inner, max_size=4)
        ),
        max_leaves=8,
    ),
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS) | ANY_TEXT, VALUES, max_size=8)
CONTENT_TYPES = st.one_of(
    st.sampled_from(
        [
            "application/json",
            "application/json; charset=utf-16",
            f"multipart/form-data; boundary={BOUNDARY}",
            'multipart/form-data; boundary=""',
            "multipart/form-data; boundary=\u00e9\ud800",
            f"multipart/form-data; charset=none; boundary={BOUNDARY}",
        ]
    ),
    ANY_TEXT,
)


UPLOAD = {"bytes": 2, "filename": "f", "mime_type": "text/plain", "purpose": "batch"}


def batch_of(complete: dict[str, str]) -> dict[str, Any]:
    return {
        "input_file_id": complete["file"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }


@pytest.fixture
def complete(api: Api) -> dict[str, str]:
    """A platform in which there is something of everything."""
    found = {"file": api.file(), "upload": str(api.post("/v1/uploads", UPLOAD).body["id"])}
    return {**found, "batch": str(api.post("/v1/batches", batch_of(found)).body["id"])}


def check(answer: Answer) -> None:
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        assert answer.error["message"]
        assert "Traceback" not in answer.error["message"]


@MANY
@given(
    method=METHODS, path=PATHS, kind=CONTENT_TYPES, body=st.one_of(st.none(), ANY_TEXT), base64_=st.booleans()
)
def test_any_request(api: Api, method: str, path: str, kind: str, body: str | None, *, base64_: bool) -> None:
    event = proxy_event(method, path, headers={"Content-Type": kind})

    check(api.send({**event, "body": body, "isBase64Encoded": base64_}))


@MANY
@given(
    values=OBJECTS,
    metadata=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3),
    headers=st.dictionaries(st.sampled_from(["Idempotency-Key", "x-stainless-retry-count"]), ANY_TEXT),
)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/v1/batches", marks=pytest.mark.thorough),
        "/v1/uploads",
        "/v1/uploads/{upload}/complete",
    ],
)
def test_any_object(
    api: Api, complete: dict[str, str], path: str, *, values: Any, metadata: Any, headers: dict[str, str]
) -> None:
    right = {
        "/v1/batches": {**batch_of(complete), "metadata": metadata},
        "/v1/uploads": {**UPLOAD, "filename": next(iter(metadata), "f")},
    }.get(path, {"part_ids": ["part_x", *metadata]})

    for sent in (values, right, {**right, **values}):
        check(api.post(path.format(**complete), json.dumps(sent), headers))


@MANY
@given(
    query=st.dictionaries(
        st.sampled_from(["after", "limit", "order", "purpose"]) | ANY_TEXT, ANY_TEXT, max_size=4
    )
)
@pytest.mark.parametrize("path", ["/v1/batches", "/v1/files"])
def test_any_query(api: Api, path: str, query: dict[str, str]) -> None:
    check(api.get(path, **query))


@MANY
@given(data=st.data())
@pytest.mark.parametrize(
    "path", [pytest.param("/v1/files", marks=pytest.mark.thorough), "/v1/uploads/{upload}/parts"]
)
def test_any_form(api: Api, complete: dict[str, str], path: str, data: st.DataObject) -> None:
    fields = data.draw(
        st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=20), st.text(max_size=20), max_size=5)
    )
    body = form(
        fields,
        file=data.draw(st.sampled_from(["file", "data", ""])),
        content=data.draw(st.binary(max_size=99)),
    )
    cut, changed = data.draw(st.integers(0, len(body))), data.draw(st.binary(max_size=9))
    sent = data.draw(st.sampled_from([body, body[:cut], body[:cut] + changed + body[cut:], changed]))
    event = proxy_event(
        "POST",
        path.format(**complete),
        headers={"content-type": f"multipart/form-data; boundary={BOUNDARY}"},
    )

    check(api.send({**event, "body": base64.b64encode(sent).decode(), "isBase64Encoded": True}))


@MANY
@given(
    context=st.fixed_dictionaries(
        {"stage": ANY_TEXT, "path": ANY_TEXT},
        optional={
            "authorizer": st.one_of(
                st.none(), st.dictionaries(st.sampled_from(["principal", "team"]), ANY_TEXT)
            ),
            "identity": st.one_of(
                st.none(), st.dictionaries(st.sampled_from(["userArn", "caller"]), ANY_TEXT)
            ),
        },
    )
)
def test_any_caller(platform_in_process: BatchPlatform, context: dict[str, Any]) -> None:
    answer = build(platform_in_process).resolve(
        {**proxy_event("GET", "/v1/files"), "requestContext": context}, LambdaContext()
    )

    assert answer["statusCode"] in {401, 403}


def test_headers_that_are_missing(api: Api) -> None:
    for method, path in (("POST", "/v1/files"), ("POST", "/v1/batches"), ("GET", "/v1/batches")):
        event = proxy_event(method, path)
        check(api.send({**event, "headers": None, "multiValueHeaders": None}))


def test_what_was_stored_is_what_was_sent(api: Api) -> None:
    content = bytes(range(256)) * 64 + f"\r\n--{BOUNDARY[:-1]}\r\n".encode()
    file = api.post_form("/v1/files", {"purpose": "batch"}, content=content).body["id"]

    assert resources.read_object(f"files/search/{file}") == content
