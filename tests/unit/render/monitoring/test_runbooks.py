"""Every alarm has a runbook with the same three answers, and every runbook has its alarm."""

import re
from pathlib import Path

import pytest

from inference_blueprints.render.monitoring.alarm_table import (
    CANARY_RUNBOOK,
    DIFFER_RUNBOOK,
    DISCOVERY_RUNBOOK,
    alarm_rows,
    late_alarm_rows,
)
from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.resources import root
from inference_contracts.operations_names import OPERATIONS_RUNBOOKS
from inference_contracts.streaming_job import STREAMING_RUNBOOKS

_HEADINGS = ["What users see", "Why", "What to do"]


_RUNBOOKS = [
    *(row.runbook for row in alarm_rows()),
    *(row.runbook for row in late_alarm_rows([("requestMs", 90.0)])),
    CANARY_RUNBOOK,
    DIFFER_RUNBOOK,
    DISCOVERY_RUNBOOK,
    *OPERATIONS_RUNBOOKS,
    *STREAMING_RUNBOOKS,
]


@pytest.mark.parametrize("runbook", _RUNBOOKS)
def test_an_alarm_has_a_runbook(runbook: str) -> None:
    text = (root() / runbook).read_text(encoding="utf-8")
    assert text.startswith(f"# {Path(runbook).stem}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == _HEADINGS


#: Alarms of the Operations stacks and of the canary are the same on both; streaming jobs run outside of both.
_ON_ECS = [
    *(row.runbook for row in alarm_rows() if not row.kubernetes),
    *(row.runbook for row in late_alarm_rows([("requestMs", 90.0)])),
    CANARY_RUNBOOK,
    DIFFER_RUNBOOK,
    DISCOVERY_RUNBOOK,
    *OPERATIONS_RUNBOOKS,
    *STREAMING_RUNBOOKS,
]
_ECS_HEADING = "### On Amazon ECS\n"


def _commands_of(text: str, program: str) -> list[str]:
    return re.findall(rf"^ *({program} .+)$", text, re.MULTILINE)


@pytest.mark.parametrize("runbook", _ON_ECS)
def test_an_alarm_that_exists_on_ecs_has_commands_for_it(runbook: str) -> None:
    """Where a page has commands for Kubernetes, an operator of ECS finds others in one place, at the end."""
    everywhere, _, on_ecs = (root() / runbook).read_text(encoding="utf-8").partition(_ECS_HEADING)
    assert _commands_of(on_ecs, "kubectl") == []
    if _commands_of(everywhere, "kubectl"):
        assert _commands_of(on_ecs, "aws") != [], f"add '{_ECS_HEADING.strip()}' with commands"


@pytest.mark.parametrize("runbook", sorted(set(_RUNBOOKS) - set(_ON_ECS)))
def test_an_alarm_of_kubernetes_says_nothing_about_ecs(runbook: str) -> None:
    assert "ECS" not in (root() / runbook).read_text(encoding="utf-8")


def test_a_runbook_has_an_alarm() -> None:
    found = {path.stem for path in (root() / "docs/runbooks").glob("*.md")}
    assert found == {Path(runbook).stem for runbook in _RUNBOOKS}


def test_links_of_runbooks_lead_somewhere() -> None:
    folder = root() / "docs/runbooks"
    for page in folder.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (folder / link).is_file(), f"{page.name}: {link}"


def test_graphs_that_runbooks_name_are_on_that_dashboard() -> None:
    titles = {row.name: {panel.title for panel in row.panels} for row in dashboard_rows(door=True)}
    named = []
    for page in (root() / "docs/runbooks").glob("*.md"):
        text = " ".join(page.read_text(encoding="utf-8").split())
        pairs = re.findall(r"\*([A-Z][^*]+)\* on the dashboard `(\w+)`", text)
        named += pairs
        assert [pair for pair in pairs if pair[0] not in titles[pair[1]]] == [], page.name
        # No graph is named without its dashboard.
        assert len(re.findall(r"\*[A-Z][^*]+\*", text.replace("**", ""))) == len(pairs), page.name
    assert len(named) > 5
