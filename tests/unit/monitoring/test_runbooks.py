"""Every alarm has a runbook with the same three answers, and every runbook has its alarm."""

import re

import pytest

from inference_blueprints.monitoring.alarm_table import AlarmRow, alarm_rows
from inference_blueprints.resources import root

_HEADINGS = ["What users see", "Why", "What to do"]


@pytest.mark.parametrize("row", alarm_rows(), ids=lambda row: row.name)
def test_an_alarm_has_a_runbook(row: AlarmRow) -> None:
    text = (root() / row.runbook).read_text(encoding="utf-8")
    assert text.startswith(f"# {row.name}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == _HEADINGS


def test_a_runbook_has_an_alarm() -> None:
    found = {path.stem for path in (root() / "docs/runbooks").glob("*.md")}
    assert found == {row.name for row in alarm_rows()}


def test_links_of_runbooks_lead_somewhere() -> None:
    folder = root() / "docs/runbooks"
    for page in folder.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (folder / link).is_file(), f"{page.name}: {link}"
