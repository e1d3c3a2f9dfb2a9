"""Who may submit what."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batch.jobs.settings import read_configuration, read_platform
from batch.variables import BatchSettingsError
from inference_contracts import principals
from inference_contracts.batch_configuration import Configuration, ConfigurationError
from tests.runtime.batch.resources import CONFIGURATION, write_configuration

#: Of the blueprints batch-g6e and image-generation, as the stack of commit 07d33550 wrote them by hand.
RECORDED = Path(__file__).with_name("recorded_configurations.jsonl").read_text("utf-8").splitlines()
ROLE = "arn:aws:iam::123456789012:role/Search"


@pytest.mark.parametrize(
    ("arn", "expected"),
    [
        (ROLE, ROLE),
        ("arn:aws:iam::123456789012:role/a/deep/path/Search", ROLE),
        ("arn:aws:sts::123456789012:assumed-role/Search/anna@example.com", ROLE),
        ("arn:aws:iam::123456789012:user/division/otto", "arn:aws:iam::123456789012:user/otto"),
        ("arn:aws-cn:sts::123456789012:assumed-role/Search/x", "arn:aws-cn:iam::123456789012:role/Search"),
        ("arn:aws:iam::123456789012:root", None),
        ("arn:aws:sts::123456789012:federated-user/Search", None),
        ("arn:aws:sts::123456789012:assumed-role/Search", None),
        ("arn:aws:sts::123456789012:assumed-role/Search/a/b", None),
        ("arn:aws:iam::123456789012:role/Search\n", None),
        ("arn:aws:iam::*:role/Search", None),
        ("arn:aws:iam::123456789012:role/*", None),
        ("Search", None),
        ("", None),
    ],
)
def test_a_caller_is_a_role_or_a_user(arn: str, expected: str | None) -> None:
    assert principals.canonical(arn) == expected


def test_a_caller_belongs_to_the_team_of_its_role() -> None:
    configuration = Configuration.from_json(json.dumps(CONFIGURATION))

    team = configuration.team_of("arn:aws:sts::123456789012:assumed-role/Search/anna")
    assert team is not None
    assert team.name == "search"
    for stranger in (
        "arn:aws:sts::999999999999:assumed-role/Search/anna",
        "arn:aws:sts::123456789012:assumed-role/search/anna",
        "arn:aws:iam::123456789012:user/Search",
    ):
        assert configuration.team_of(stranger) is None


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = copy.deepcopy(CONFIGURATION)
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        (changed(lambda document: document.pop("platform")), "platform"),
        (changed(lambda document: document["queues"].clear()), "no queue"),
        (changed(lambda document: document["queues"][0].pop("model")), "model"),
        (changed(lambda document: document["queues"][0].update(colour="red")), "colour"),
        (
            changed(lambda document: document["queues"].append(document["queues"][0])),
            "nightly is listed 2 times",
        ),
        (
            changed(lambda document: document["teams"].append(document["teams"][0])),
            "search is listed 2 times",
        ),
        (
            changed(lambda document: document["teams"][1]["principals"].append(ROLE)),
            "is in teams search and adverts",
        ),
        (changed(lambda document: document["teams"][0]["principals"].append("*")), "is not the ARN"),
        (
            changed(lambda document: document["teams"][0]["dataPrefixes"].append("s3://b/x")),
            "slash at its end",
        ),
    ],
)
def test_a_wrong_document_is_refused(document: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Configuration.from_json(document)


@pytest.mark.parametrize("text", RECORDED)
def test_a_recorded_document_is_read_and_written_with_the_same_keys(text: str) -> None:
    """Red if a key is renamed, added or lost: code and document of different releases could not meet."""
    document = json.loads(text)
    written = Configuration.from_json(text).to_document()
    assert written == document
    assert [*written["queues"][0]] == [*document["queues"][0]]
    assert [*written["teams"][0]] == [*document["teams"][0]]


def test_the_document_is_a_file(tmp_path: Path) -> None:
    file = write_configuration(tmp_path, CONFIGURATION)

    found = read_configuration({"BATCH_CONFIGURATION": str(file)})

    assert found.queues[0].capacity.input_tokens_per_second == 40_000


def test_missing_variables_are_all_named() -> None:
    with pytest.raises(BatchSettingsError, match="BATCH_TABLE, BATCH_BUCKET, BATCH_STATE_MACHINE_ARN"):
        read_platform({"BATCH_CONFIGURATION": "configuration.json"})
