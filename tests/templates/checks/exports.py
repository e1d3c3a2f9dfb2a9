"""References between stacks: weak ones alone, so that a section can be turned off in one deployment."""

from __future__ import annotations

import json

from tests.templates.support import Templates


def exports(templates: Templates) -> list[str]:
    """Return the stacks that import a value of another by export, or export one."""
    return [
        name
        for name, template in templates.by_stack.items()
        if "Fn::ImportValue" in json.dumps(template)
        or any("Export" in output for output in template.get("Outputs", {}).values())
    ]
