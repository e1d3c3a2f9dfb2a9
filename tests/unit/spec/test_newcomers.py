"""Six newcomers write a valid blueprint in two attempts, or are told what cannot be said yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.first_blueprint import Wish, first_blueprint
from inference_contracts.errors import BlueprintError

NEWCOMERS = yaml.safe_load((Path(__file__).parent / "newcomers.yaml").read_text(encoding="utf-8"))


def changed(text: str, changes: list[list[str]]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("newcomer", NEWCOMERS, ids=[each["who"].split()[1].strip(",") for each in NEWCOMERS])
def test_the_second_attempt_is_valid(newcomer: dict[str, Any]) -> None:
    """A message that leaves something to be found out by a third attempt turns this red."""
    started = first_blueprint(Wish(**newcomer["init"], name="mine")).text
    first = changed(started, newcomer["changes"])
    with pytest.raises(BlueprintError) as refused:
        parse_blueprint(first, "mine.yaml")
    found = {problem.path: problem.message for problem in refused.value.problems}
    assert found.keys() == newcomer["errors"].keys()
    for path, message in newcomer["errors"].items():
        assert message in found[path]
    parse_blueprint(changed(first, newcomer["second"]), "mine.yaml")
