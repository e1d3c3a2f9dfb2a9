"""Every alarm has a runbook with the same three answers, and every runbook has its alarm."""

import re
from pathlib import Path

import pytest

from inference_blueprints.contracts.operations_runbooks import OPERATIONS_RUNBOOKS
from inference_blueprints.contracts.streaming_names import STREAMING_RUNBOOKS
from inference_blueprints.monitoring.alarm_table import CANARY_RUNBOOK, alarm_rows
from inference_blueprints.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.resources import root

_HEADINGS = ["What users see", "Why", "What to do"]


_RUNBOOKS = [
    *(row.runbook for row in alarm_rows()),
    CANARY_RUNBOOK,
    *OPERATIONS_RUNBOOKS,
    *STREAMING_RUNBOOKS,
]


@pytest.mark.parametrize("runbook", _RUNBOOKS)
def test_an_alarm_has_a_runbook(runbook: str) -> None:
    text = (root() / runbook).read_text(encoding="utf-8")
    assert text.startswith(f"# {Path(runbook).stem}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == _HEADINGS


def test_a_runbook_has_an_alarm() -> None:
    found = {path.stem for path in (root() / "docs/runbooks").glob("*.md")}
    assert found == {Path(runbook).stem for runbook in _RUNBOOKS}


def test_links_of_runbooks_lead_somewhere() -> None:
    folder = root() / "docs/runbooks"
    for page in folder.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (folder / link).is_file(), f"{page.name}: {link}"


def test_graphs_that_runbooks_name_are_on_that_dashboard() -> None:
    titles = {row.name: {panel.title for panel in row.panels} for row in dashboard_rows()}
    named = []
    for page in (root() / "docs/runbooks").glob("*.md"):
        text = " ".join(page.read_text(encoding="utf-8").split())
        pairs = re.findall(r"\*([A-Z][^*]+)\* on the dashboard `(\w+)`", text)
        named += pairs
        assert [pair for pair in pairs if pair[0] not in titles[pair[1]]] == [], page.name
        # No graph is named without its dashboard.
        assert len(re.findall(r"\*[A-Z][^*]+\*", text.replace("**", ""))) == len(pairs), page.name
    assert len(named) > 5
