"""Files that come in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest

from batch.jobs.settings import BatchPlatform
from tests.runtime.batch import resources
from tests.runtime.batch.api.requesting import Answer, Api


def test_nothing_is_left_of_a_cancelled_upload(api: Api, aws: dict[str, str]) -> None:
    upload = api.post(
        "/v1/uploads", {"bytes": 2, "filename": "f", "mime_type": "text/plain", "purpose": "batch"}
    ).body["id"]
    part = api.post_form(f"/v1/uploads/{upload}/parts", {}, file="data").body["id"]
    assert resources.list_keys("uploads/") == [f"uploads/search/{upload}/{part}"]

    assert api.post(f"/v1/uploads/{upload}/cancel", "").body["status"] == "cancelled"

    assert resources.list_keys("") == []
    assert api.post(f"/v1/uploads/{upload}/cancel", "").status == 200
    assert api.post_form(f"/v1/uploads/{upload}/parts", {}, file="data").error["code"] == "upload_not_pending"
    completion = {"part_ids": [part]}
    assert api.post(f"/v1/uploads/{upload}/complete", completion).error["code"] == "upload_not_pending"


@pytest.fixture
def upload(api: Api) -> Callable[..., Answer]:
    """Begin an upload of some bytes, send parts and complete it."""

    def upload(parts: list[bytes], size: int, **changes: Any) -> Answer:
        begun = {"bytes": size, "filename": "f", "mime_type": "text/plain", "purpose": "batch"}
        identifier = api.post("/v1/uploads", begun).body["id"]
        path = f"/v1/uploads/{identifier}"
        sent = [api.post_form(f"{path}/parts", {}, file="data", content=part).body["id"] for part in parts]
        completion = {"part_ids": sent, **changes}
        first = api.post(f"{path}/complete", completion)
        assert api.post(f"{path}/complete", completion).body == first.body
        return first

    return upload


def test_parts_are_joined_in_the_order_that_was_asked_for(api: Api, upload: Callable[..., Answer]) -> None:
    answer = upload([b"one\n", b"two\n"], 8)

    file = answer.body["file"]["id"]
    assert answer.body["status"] == "completed"
    assert resources.read_object(f"files/search/{file}") == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("size", "changes", "param"),
    [
        (9, {}, "part_ids"),
        (8, {"part_ids": []}, "part_ids"),
        (8, {"part_ids": ["part_x"]}, "part_ids"),
        (8, {"part_ids": "part_x"}, "part_ids"),
        (8, {"md5": "0" * 32}, "md5"),
    ],
)
def test_an_upload_that_is_not_what_was_announced_is_no_file(
    api: Api, upload: Callable[..., Answer], size: int, changes: dict[str, Any], param: str
) -> None:
    answer = upload([b"one\n", b"two\n"], size, **changes)

    assert (answer.status, answer.error["param"]) == (400, param)
    assert api.get("/v1/files").body["data"] == []
    assert resources.list_keys("files/") == []
    assert boto3.client("s3").list_multipart_uploads(Bucket=resources.BUCKET).get("Uploads", []) == []


def test_an_upload_that_is_too_large_is_refused_before_it_begins(api: Api) -> None:
    begun = {"bytes": 2**30, "filename": "f", "mime_type": "text/plain", "purpose": "batch"}
    answer = api.post("/v1/uploads", begun)

    assert answer.status == 413
    assert "manifest" in answer.error["message"]


def test_of_two_completions_at_once_both_are_told_of_the_same_file(
    api: Api, platform_in_process: BatchPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = {"bytes": 2, "filename": "f", "mime_type": "text/plain", "purpose": "batch"}
    path = f"/v1/uploads/{api.post('/v1/uploads', begun).body['id']}"
    completion = {"part_ids": [api.post_form(f"{path}/parts", {}, file="data").body["id"]]}
    storage, join, others = platform_in_process.storage, platform_in_process.storage.join, []

    def join_while_another_does(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(storage, "join", join)
        others.append(api.post(f"{path}/complete", completion))
        # The other one has deleted the parts; this one had read them by then.
        platform_in_process.storage.put(arguments[1], b"{}")

    monkeypatch.setattr(storage, "join", join_while_another_does)
    answer = api.post(f"{path}/complete", completion)

    assert answer.body == others[0].body
    assert [file["id"] for file in api.get("/v1/files").body["data"]] == [answer.body["file"]["id"]]
    assert resources.list_keys("") == [f"files/search/{answer.body['file']['id']}"]
