"""The worker's contract: variables that are right, missing and wrong, all of them at once."""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from batch.variables import BatchSettingsError
from batch.worker import settings as module
from batch.worker.__main__ import main
from batch.worker.settings import read_settings
from inference_blueprints.resources import root
from inference_contracts import batch_names

RIGHT = {
    "BATCH_QUEUE_URL": "https://queue",
    "BATCH_BUCKET": "bucket",
    "BATCH_ENDPOINT": "http://endpoint:8000/",
    "BATCH_MODEL": "qwen",
}


def test_what_is_left_out_has_its_default() -> None:
    found = read_settings(RIGHT)
    assert found.endpoint == "http://endpoint:8000"
    assert (found.in_flight_most, found.memory_bytes, found.flush_seconds) == (512, 256 * 2**20, 1.0)
    assert found.retry_ratio == pytest.approx(0.1)
    assert found.status_file is None


def test_headers_are_read_from_json() -> None:
    found = read_settings({**RIGHT, "BATCH_REQUEST_HEADERS": '{"x-class": "batch"}'})
    assert found.request_headers == {"x-class": "batch"}


def test_addresses_of_deployments_that_may_have_no_workers_are_separate() -> None:
    found = read_settings({**RIGHT, "BATCH_LENT_ENDPOINTS": "http://night/, http://evening"})
    assert found.lent_endpoints == ("http://night", "http://evening")
    assert read_settings({**RIGHT, "BATCH_LENT_ENDPOINTS": ""}).lent_endpoints == ()


def test_what_is_named_is_taken_in_its_unit() -> None:
    found = read_settings({**RIGHT, "BATCH_LINE_MOST_KIB": "2", "BATCH_STATUS_FILE": "/tmp/x"})  # noqa: S108
    assert (found.line_bytes, found.status_file) == (2048, Path("/tmp/x"))  # noqa: S108


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"BATCH_QUEUE_URL": "", "BATCH_MODEL": ""}, "variables are missing: BATCH_QUEUE_URL, BATCH_MODEL"),
        ({"BATCH_ATTEMPTS": "0"}, "BATCH_ATTEMPTS: got '0', must be a whole number of at least 1"),
        ({"BATCH_POLL_SECONDS": "21"}, "at least 0 and at most 20"),
        ({"BATCH_FLUSH_KIB": "-1"}, "BATCH_FLUSH_KIB: got '-1'"),
        ({"BATCH_IN_FLIGHT_START": "600"}, "got 4, 600 and 512, must not decrease"),
        ({"BATCH_REQUEST_HEADERS": "x: y"}, "BATCH_REQUEST_HEADERS: got 'x: y', must be a JSON object"),
        ({"BATCH_REQUEST_HEADERS": '{"x": 1}'}, "must be a JSON object of strings"),
        ({"BATCH_HEARTBEAT_SECONDS": "61"}, "at most half of BATCH_VISIBILITY_SECONDS"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, str], words: str) -> None:
    with pytest.raises(BatchSettingsError, match=re.escape(words)):
        read_settings({**RIGHT, **change})


def test_with_keys_for_the_front_door_lent_deployments_have_names_there() -> None:
    found = read_settings({**RIGHT, "DOOR_KEYS_SECRET": "arn", "BATCH_LENT_DEPLOYMENTS": "night, dawn"})
    assert (found.door_keys_secret, found.lent_deployments) == ("arn", ("night", "dawn"))
    plain = read_settings(RIGHT)
    assert (plain.door_keys_secret, plain.lent_deployments) == (None, ())


def test_every_variable_is_described() -> None:
    source = Path(module.__file__).read_text(encoding="utf-8")
    documented = set(re.findall(r"^``(BATCH_\w+)``", module.__doc__ or "", re.MULTILINE))
    read = set(re.findall(r"variables\.([A-Z_]+)", source))
    assert documented == {getattr(batch_names, name) for name in read}


def test_the_defaults_are_as_described() -> None:
    rows = re.findall(r"^``(BATCH_\w+)`` .*?  +(\d+)$", module.__doc__ or "", re.MULTILINE)
    described = {name: int(value) for name, value in rows}
    defaults = {
        entry.metadata["variable"]: entry.metadata["default"]
        for entry in fields(module.WorkerSettings)
        if entry.metadata
    }
    assert described == defaults


def test_a_worker_with_a_wrong_environment_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main({}) == 2
    assert capsys.readouterr().err.startswith("error: environment variables are missing: BATCH_QUEUE_URL, ")


def test_the_image_has_what_the_worker_imports() -> None:
    """Its packages are those of the lock file, with their hashes."""
    listed = (root() / "runtime/batch/worker/requirements.txt").read_text(encoding="utf-8")
    pins = set(re.findall(r"^([\w.-]+==[\w.]+) ", listed, re.MULTILINE))
    locked = (root() / "requirements.lock").read_text(encoding="utf-8")
    assert pins
    assert pins <= set(re.findall(r"^([\w.-]+==[\w.]+) ", locked, re.MULTILINE))
    names = {pin.partition("==")[0].replace("-", "_") for pin in pins}
    own = {"batch", "inference_contracts"} | set(sys.stdlib_module_names)
    imported = {
        found
        for file in (root() / "runtime/batch/worker").glob("*.py")
        for found in re.findall(r"^(?:from|import) (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert imported - own <= names


def test_a_message_is_held_for_less_than_sqs_allows() -> None:
    settings = read_settings(RIGHT)
    assert settings.hold_seconds + settings.request_seconds < 43_200
    with pytest.raises(BatchSettingsError, match="43200 together"):
        read_settings({**RIGHT, "BATCH_HOLD_SECONDS": "43000"})


def test_progress_is_told_where_a_table_is_named() -> None:
    assert read_settings(RIGHT).progress_table is None
    assert read_settings({**RIGHT, "BATCH_PROGRESS_TABLE": "far"}).progress_table == "far"
