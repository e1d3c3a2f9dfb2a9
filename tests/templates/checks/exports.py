"""References between stacks: weak ones alone, so that a section can be turned off in one deployment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tests.templates.support import Templates


def exports(templates: Templates) -> list[str]:
    """Return the stacks that import a value of another by export, or export one."""
    return [
        name
        for name, template in templates.by_stack.items()
        if "Fn::ImportValue" in json.dumps(template)
        or any("Export" in output for output in template.get("Outputs", {}).values())
    ]


def too_early(templates: Templates) -> list[tuple[str, str]]:
    """Return the stacks that read an output of another without being deployed after it.

    CDK derives no order from the output of a stack that is named (`Fn.get_stack_output`).
    """
    before = {
        name: {each.split("-", 1)[1] for each in artifact.get("dependencies", ()) if ".assets" not in each}
        for name, artifact in templates.artifacts.items()
    }
    found = {
        (name, other.split("-", 1)[1])
        for name, template in templates.by_stack.items()
        for other in re.findall(r'"StackName": "([^"]+)", "Region"', json.dumps(template))
    }
    return sorted((name, other) for name, other in found if other not in _all_before(name, before))


def _all_before(name: str, before: Mapping[str, set[str]]) -> set[str]:
    """Return all stacks that are deployed before one."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        fresh = before.get(waiting.pop(), set()) - found
        found |= fresh
        waiting += fresh
    return found
