"""Answers become signals once, the later job's stay, and whatever breaks off can be done again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import Any

import boto3
import pytest

from batch.contracts.progress_items import Published
from batch.objects import Objects
from batch.publication import handler, publishing
from batch.publication.publishing import Publisher
from inference_contracts.signal_rows import COLUMNS
from signals.record import SignalRecord
from signals.store import SignalWriter, Written
from tests.runtime.batch import resources
from tests.runtime.batch.job_records import HOUR, NOW
from tests.runtime.batch.publication.conftest import HISTORY, SIGNAL, Answered, Jobs, chat
from tests.runtime.signals.memory_server import MemoryServer


def history() -> dict[str, bytes]:
    """Return what the history holds, by key."""
    client = boto3.client("s3")
    listed = client.list_objects_v2(Bucket=HISTORY).get("Contents", [])
    return {each["Key"]: client.get_object(Bucket=HISTORY, Key=each["Key"])["Body"].read() for each in listed}


def rows(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(content).splitlines()]


class Breaking:
    """A store that writes and then does not answer any more."""

    def __init__(self, store: SignalWriter, writes: int) -> None:
        self._store = store
        self._left = writes

    def write(self, signals: Iterable[SignalRecord]) -> Written:
        if not self._left:
            raise ConnectionError("nobody answers")
        self._left -= 1
        return self._store.write(signals)


def test_answers_are_signals_and_history(publisher: Publisher, store: SignalWriter, jobs: Jobs) -> None:
    job = jobs.job()
    answers = [chat("a", "a shoe"), chat("b", "Ä \u2028 hat", prompt="And this?"), chat("c", "a shoe")]
    jobs.part(job, "000000", answers)
    assert publisher.publish(job.id, "000000") == Published(3, 0, 0)
    found = store.get_many(SIGNAL, ["a", "b", "c"])
    assert {key: signal.value for key, signal in found.items()} == {
        "a": "a shoe",
        "b": "Ä \u2028 hat",
        "c": "a shoe",
    }
    first = found["a"]
    assert (first.version, first.model, first.time) == (NOW * 1000, "qwen3-8b", NOW)
    assert first.expires == NOW + 10**9
    assert first.prompt_hash == found["c"].prompt_hash != found["b"].prompt_hash
    [(key, content)] = history().items()
    assert key == f"signals/name={SIGNAL}/date=2027-01-15/{job.id}-000000.jsonl.gz"
    written = rows(content)
    assert [list(row) for row in written] == [list(COLUMNS)] * 3
    kinds = {"string": str, "bigint": int}
    assert all(isinstance(row[name], kinds[kind]) for row in written for name, kind in COLUMNS.items())
    assert sorted(row["key"] for row in written) == ["a", "b", "c"]


def test_a_later_turn_of_a_shard_is_a_part_of_its_own(
    publisher: Publisher, store: SignalWriter, jobs: Jobs
) -> None:
    job = jobs.job()
    jobs.part(job, "000000", [chat("a", "before")])
    jobs.part(job, "000000.1", [chat("a", "before"), chat("b", "after")])
    assert publisher.publish(job.id, "000000.1").written == 2
    found = store.get(SIGNAL, "b")
    assert found is not None
    assert found.value == "after"


def test_publishing_twice_changes_nothing(publisher: Publisher, store: SignalWriter, jobs: Jobs) -> None:
    job = jobs.job()
    jobs.part(job, "000000", [chat(str(number), f"text {number}") for number in range(50)])
    publisher.publish(job.id, "000000")
    before, signal = history(), store.get(SIGNAL, "7")
    assert publisher.publish(job.id, "000000") == Published(0, 50, 0)
    assert (history(), store.get(SIGNAL, "7")) == (before, signal)


@pytest.mark.parametrize("later_first", [True, False])
def test_what_was_asked_later_stays_whichever_job_ends_first(
    publisher: Publisher, store: SignalWriter, jobs: Jobs, *, later_first: bool
) -> None:
    earlier, later = jobs.job(NOW * 1000), jobs.job(NOW * 1000 + 1)
    # The earlier job's answer was given last.
    jobs.part(earlier, "000000", [chat("a", "old", created=NOW + HOUR)])
    jobs.part(later, "000000", [chat("a", "new")])
    order = [later, earlier] if later_first else [earlier, later]
    written = [publisher.publish(job.id, "000000").written for job in order]
    assert written == ([1, 0] if later_first else [1, 1])
    found = store.get(SIGNAL, "a")
    assert found is not None
    assert found.value == "new"
    assert len(history()) == 2


def test_what_breaks_off_half_way_is_done_again(
    store: SignalWriter, objects: Objects, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_AT_ONCE", 10)
    job = jobs.job()
    jobs.part(job, "000000", [chat(str(number), "text") for number in range(35)])
    breaking = Publisher(Breaking(store, writes=2), objects, Objects(HISTORY))
    with pytest.raises(ConnectionError, match="nobody answers"):
        breaking.publish(job.id, "000000")
    assert history() == {}
    assert resources.list_keys(f"jobs/{job.id}/published/") == []
    again = Publisher(store, objects, Objects(HISTORY))
    assert again.publish(job.id, "000000") == Published(15, 20, 0)
    assert len(store.get_many(SIGNAL, [str(number) for number in range(35)])) == 35
    [content] = history().values()
    assert len(rows(content)) == 35
    assert Published.from_json(resources.read_object(f"jobs/{job.id}/published/000000.json")).written == 15


def test_what_is_no_text_is_counted_and_changes_nothing(
    publisher: Publisher, store: SignalWriter, jobs: Jobs
) -> None:
    before = jobs.job(NOW * 1000 - 1)
    jobs.part(before, "000000", [chat("tool", "said before")])
    publisher.publish(before.id, "000000")
    job = jobs.job()
    jobs.part(
        job,
        "000000",
        [
            chat("tool", None),
            chat("empty", ""),
            Answered("list", {"created": NOW, "choices": [{"message": {"content": [{"text": "x"}]}}]}),
            Answered("none", {"created": NOW, "choices": []}),
            Answered("vector", {"data": [{"embedding": [0.5]}]}),
            chat("k" * 1025, "a key that is too long"),
            chat("good", "text"),
        ],
    )
    assert publisher.publish(job.id, "000000") == Published(1, 0, 6)
    found = store.get(SIGNAL, "tool")
    assert found is not None
    assert found.value == "said before"


def test_a_completion_s_text_is_its_answer_and_the_job_s_time_stands_in_for_none(
    publisher: Publisher, store: SignalWriter, jobs: Jobs
) -> None:
    job = jobs.job()
    jobs.part(job, "000000", [Answered("a", {"choices": [{"text": " shoe"}]})])
    publisher.publish(job.id, "000000")
    found = store.get(SIGNAL, "a")
    assert found is not None
    assert (found.value, found.time) == (" shoe", NOW)


def test_an_answer_that_is_no_longer_true_is_in_the_history_alone(
    publisher: Publisher, store: SignalWriter, jobs: Jobs
) -> None:
    job = jobs.job(1_700_000_000_000, ttl_seconds=60)
    jobs.part(job, "000000", [chat("a", "long ago", created=1_700_000_000)])
    publisher.publish(job.id, "000000")
    assert store.get(SIGNAL, "a") is None
    [content] = history().values()
    assert [row["value"] for row in rows(content)] == ["long ago"]


def test_a_job_that_does_not_publish_is_refused(
    publisher: Publisher, jobs: Jobs, objects: Objects, platform_in_process: Any
) -> None:
    job = jobs.job()
    request = json.loads(objects.read(f"jobs/{job.id}/request.json"))
    objects.write(f"jobs/{job.id}/request.json", json.dumps({**request, "publication": None}).encode())
    with pytest.raises(LookupError, match="does not publish"):
        publisher.publish(job.id, "000000")


def test_the_function_finds_the_store_by_its_environment(
    server: MemoryServer, store: SignalWriter, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGNALS_HOST", "127.0.0.1")
    monkeypatch.setenv("SIGNALS_PORT", str(server.port))
    handler._publisher.cache_clear()
    job = jobs.job()
    jobs.part(job, "000000", [chat("a", "text")])
    answer = handler.handle({"job": job.id, "part": "000000"}, None)
    handler._publisher.cache_clear()
    assert answer == {"written": 1, "superseded": 0, "unfit": 0}
    assert store.get(SIGNAL, "a") is not None
