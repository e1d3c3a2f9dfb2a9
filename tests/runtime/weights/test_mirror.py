"""A copy is whole and right, or it is not announced."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
import botocore.awsrequest
import pytest

from tests.runtime.conftest import Pauses
from tests.runtime.weights.conftest import BUCKET, FILES, Published, objects, unfinished
from tests.runtime.weights.fake_hub import COMMIT
from weights import mirror, wait
from weights.hub import BrokenHubError, CorruptFileError

TOKEN = "hf_of_the_secret"  # noqa: S105
SHARD = "model-00001-of-00002.safetensors"


def manifest(s3: Any, published: Published) -> Any:
    """Return the manifest's content, None without one."""
    text = objects(s3, published.prefix).get(".json")
    return json.loads(text) if text else None


def copied(s3: Any, published: Published) -> dict[str, bytes]:
    return objects(s3, f"{published.prefix}/")


def test_every_file_arrives_and_the_manifest_names_them(published: Published, s3: Any) -> None:
    assert mirror.main(published.environment) == 0
    assert copied(s3, published) == FILES
    written = manifest(s3, published)
    assert (written["repository"], written["revision"]) == (published.repository, COMMIT)
    assert {file["path"]: file["size"] for file in written["files"]} == {
        path: len(content) for path, content in FILES.items()
    }
    assert written["bytes"] == sum(map(len, FILES.values()))


def test_s3_checked_what_arrived(published: Published, s3: Any) -> None:
    mirror.main(published.environment)
    head = s3.head_object(Bucket=BUCKET, Key=f"{published.prefix}/{SHARD}", ChecksumMode="ENABLED")
    assert head["ChecksumSHA256"]
    assert head["Metadata"]["digest"].startswith("sha256:")


def test_what_is_complete_is_not_fetched_again(published: Published, s3: Any) -> None:
    mirror.main(published.environment)
    published.model.asked.clear()
    assert mirror.main(published.environment) == 0
    assert published.model.asked == []
    assert manifest(s3, published)


@pytest.mark.parametrize("metadata", [{}, {"digest": "sha256:" + "0" * 64}])
def test_an_object_of_the_right_size_and_another_digest_is_replaced(
    published: Published, s3: Any, metadata: dict[str, str]
) -> None:
    mirror.main(published.environment)
    wrong = bytes(len(FILES[SHARD]))
    s3.put_object(Bucket=BUCKET, Key=f"{published.prefix}/{SHARD}", Body=wrong, Metadata=metadata)
    published.model.asked.clear()
    assert mirror.main(published.environment) == 0
    assert published.model.asked == [(SHARD, 0)]
    assert copied(s3, published) == FILES


def test_a_connection_that_is_cut_goes_on_where_it_was(published: Published, s3: Any, pauses: Pauses) -> None:
    """Many cuts in a row between two bytes are more than huggingface_hub bears by itself."""
    published.model.cuts[SHARD], published.model.cut_after_bytes = 4, 3 * 2**20 + 11
    assert mirror.main(published.environment) == 0
    published.model.cuts["config.json"], published.model.cut_after_bytes = 7, 0
    s3.delete_object(Bucket=BUCKET, Key=f"{published.prefix}/config.json")
    assert mirror.main(published.environment) == 0
    assert copied(s3, published) == FILES
    starts = [first for path, first in published.model.asked if path == SHARD]
    assert len(starts) == 4
    assert starts == sorted(starts)
    assert starts[1] >= 3 * 2**20


@pytest.mark.parametrize("fault", ["ends early without an error", "sends the whole file for a part"])
def test_a_wrong_answer_is_not_mixed_into_a_file(
    published: Published, s3: Any, pauses: Pauses, fault: str
) -> None:
    """A clean end would make a short file, and the bytes of a whole answer a file with other bytes."""
    model = published.model
    model.cut_after_bytes = 3 * 2**20 + 11
    if fault == "ends early without an error":
        model.short[SHARD] = 2
    else:
        model.cuts[SHARD], model.ignored_ranges[SHARD] = 1, 2
    assert mirror.main(published.environment) == 0
    assert copied(s3, published) == FILES
    starts = [first for path, first in model.asked if path == SHARD]
    assert starts[0] == 0 < min(starts[1:])


def test_a_hub_that_breaks_every_answer_ends_with_the_place(
    published: Published, s3: Any, pauses: Pauses
) -> None:
    published.model.cuts["config.json"] = 1000
    with pytest.raises(BrokenHubError, match=r"config.json: broken at byte 0 of 23: "):
        mirror.main(published.environment)
    assert manifest(s3, published) is None
    assert unfinished(s3) == []


@pytest.mark.parametrize("path", [SHARD, "config.json"])
def test_a_file_with_other_bytes_is_not_kept(published: Published, s3: Any, path: str) -> None:
    content = FILES[path]
    published.model.sent_instead[path] = content[:-1] + bytes([content[-1] ^ 1])
    with pytest.raises(CorruptFileError, match=path):
        mirror.main(published.environment)
    assert path not in copied(s3, published)
    assert manifest(s3, published) is None
    assert unfinished(s3) == []


def test_a_file_that_ends_early_is_not_kept(published: Published, s3: Any, pauses: Pauses) -> None:
    published.model.sent_instead[SHARD] = FILES[SHARD][:-5000]
    with pytest.raises(CorruptFileError, match="5000 bytes early"):
        mirror.main(published.environment)
    assert SHARD not in copied(s3, published)
    assert manifest(s3, published) is None
    assert unfinished(s3) == []


def test_a_copy_that_lost_a_file_is_not_announced_until_it_is_back(published: Published, s3: Any) -> None:
    mirror.main(published.environment)
    s3.delete_object(Bucket=BUCKET, Key=f"{published.prefix}/{SHARD}")
    published.model.sent_instead[SHARD] = bytes(len(FILES[SHARD]))
    with pytest.raises(CorruptFileError):
        mirror.main(published.environment)
    assert manifest(s3, published) is None
    published.model.sent_instead.clear()
    mirror.main(published.environment)
    assert manifest(s3, published)
    assert copied(s3, published) == FILES


def test_a_busy_hub_is_asked_again(published: Published, s3: Any, pauses: Pauses) -> None:
    published.model.busy = [429, 503]
    assert mirror.main(published.environment) == 0
    assert copied(s3, published) == FILES
    assert published.model.busy == []
    assert len(pauses.seconds) == 2


def test_throttling_by_s3_is_waited_for(
    published: Published, s3: Any, monkeypatch: pytest.MonkeyPatch, pauses: Pauses
) -> None:
    refused: list[str] = []

    def throttle(request: Any, **_: Any) -> Any:
        if len(refused) >= 4:
            return None
        refused.append(request.url)
        body = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
        response = botocore.awsrequest.AWSResponse(request.url, 503, {}, None)
        response._content = body
        return response

    create = boto3.client

    def client(*words: Any, **options: Any) -> Any:
        made = create(*words, **options)
        made.meta.events.register_first("before-send.s3.UploadPart", throttle)
        return made

    monkeypatch.setattr(boto3, "client", client)
    assert mirror.main(published.environment) == 0
    assert len(refused) == len(pauses.seconds) == 4
    assert copied(s3, published) == FILES


@pytest.mark.parametrize(
    "refusal",
    [
        (403, "GatedRepo", "is gated: accept its licence at https://huggingface.co/acme/"),
        (401, "GatedRepo", "is gated: accept its licence"),
        (401, "RepoNotFound", "is not on the Hub, or private"),
        (404, "RepoNotFound", "is not on the Hub, or private"),
        (404, "RevisionNotFound", f"has no revision {COMMIT}"),
        (403, "", "cannot be read with this token"),
    ],
)
@pytest.mark.parametrize("refused", ["everything", "files"])
def test_a_refusal_says_what_to_do_and_is_final(
    published: Published,
    s3: Any,
    capsys: pytest.CaptureFixture[str],
    refusal: tuple[int, str, str],
    refused: str,
) -> None:
    status, code, words = refusal
    published.model.refusal, published.model.is_listed = (status, code), refused == "files"
    assert mirror.main(published.environment) == mirror.OF_NO_USE
    assert words in capsys.readouterr().err
    assert not {SHARD, "config.json"} & copied(s3, published).keys()
    assert manifest(s3, published) is None


def test_a_gated_model_is_copied_with_its_token_which_is_not_shown(
    published: Published, s3: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    published.model.token = TOKEN
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert mirror.main(published.environment) == 0
    assert copied(s3, published) == FILES
    output = capsys.readouterr()
    assert TOKEN not in output.out + output.err


def test_other_formats_of_the_same_weights_are_left_out(publish: Callable[..., Published], s3: Any) -> None:
    duplicates = {
        "original/model.safetensors": b"o",
        "consolidated.safetensors": b"c",
        "pytorch_model.bin": b"p",
    }
    published = publish({**FILES, **duplicates})
    assert mirror.main(published.environment) == 0
    assert copied(s3, published) == FILES


def test_a_model_without_safetensors_is_refused(
    publish: Callable[..., Published], s3: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    published = publish({"config.json": b"{}", "pytorch_model.bin": b"p"})
    assert mirror.main(published.environment) == mirror.OF_NO_USE
    assert "has no safetensors" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"WEIGHTS_BUCKET": "", "WEIGHTS_REVISION": ""}, "missing: WEIGHTS_BUCKET, WEIGHTS_REVISION"),
        ({"WEIGHTS_PART_MIB": "4"}, "WEIGHTS_PART_MIB: got '4', must be a whole number of at least 5"),
        ({"WEIGHTS_FILES_AT_ONCE": "many"}, "WEIGHTS_FILES_AT_ONCE: got 'many'"),
    ],
)
def test_a_wrong_environment_is_explained(
    published: Published, capsys: pytest.CaptureFixture[str], change: dict[str, str], words: str
) -> None:
    assert mirror.main({**published.environment, **change}) == mirror.OF_NO_USE
    assert words in capsys.readouterr().err


def test_a_worker_waits_for_the_manifest_and_not_for_the_files(
    published: Published, s3: Any, pauses: Pauses
) -> None:
    s3.put_object(Bucket=BUCKET, Key=f"{published.prefix}/config.json", Body=b"{}")
    pauses.let_happen(bool, lambda: mirror.main(published.environment))
    assert wait.main(published.environment, period_seconds=7.0) == 0
    assert pauses.seconds == [7.0, 7.0]


def test_a_worker_without_settings_ends_with_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert wait.main({}) == 1
    assert "WEIGHTS_BUCKET, WEIGHTS_PREFIX" in capsys.readouterr().err
