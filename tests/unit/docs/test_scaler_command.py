"""The runbook that installs a lost KEDA again names the release that the platform has."""

from __future__ import annotations

import json

from inference_blueprints.resources import root
from inference_catalog.charts import charts
from tests.unit.docs.test_commands import commands

_PAGE = root() / "docs/runbooks/scaler-gone.md"
_TEMPLATES = root() / "tests/templates/recorded/capacity-and-health.json"


def test_the_runbook_installs_the_release_of_the_template() -> None:
    """Red if the stack, the chart or the namespace moves, or if the values are not plain text."""
    [words] = [each for each in commands(_PAGE) if each[0] == "helm"]
    options = dict(zip(words[5::2], words[6::2], strict=True))
    stacks = json.loads(_TEMPLATES.read_text(encoding="utf-8"))
    [stack] = [stack for name, stack in stacks.items() if name.endswith("Platform")]
    [release] = [
        each["Properties"]
        for each in stack["Resources"].values()
        if each.get("Properties", {}).get("Release") == words[2]
    ]
    assert words[:5] == ["helm", "upgrade", release["Release"], release["Chart"], "--install"]
    assert (options["--namespace"], options["--repo"]) == (release["Namespace"], release["Repository"])
    assert json.loads(release["Values"])["serviceAccount"]
    assert release["Version"] == charts()["keda"].version
