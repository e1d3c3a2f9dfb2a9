"""CloudFormation's limits on one stack.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.templates.support import Templates

RESOURCES = 500
OUTPUTS = 200
TEMPLATE_BYTES = 1_000_000
#: What Lambda takes as a custom resource's event: CloudFormation invokes it asynchronously, with the
#: properties of the resource and, in an update, the old ones too
#: (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
EVENT_BYTES = 256 * 1024


@dataclass(frozen=True)
class Size:
    """How large one stack's template is."""

    resources: int
    outputs: int
    template_bytes: int
    largest_update_event_bytes: int

    @classmethod
    def of(cls, template: dict[str, Any], template_bytes: int) -> Size:
        """Measure a template that takes so many bytes as it is uploaded."""
        custom = [
            len(json.dumps(resource["Properties"]))
            for resource in template["Resources"].values()
            if resource["Type"].startswith("Custom::")
        ]
        return cls(
            resources=len(template["Resources"]),
            outputs=len(template.get("Outputs", {})),
            template_bytes=template_bytes,
            largest_update_event_bytes=2 * max(custom, default=0),
        )

    def exceeded(self) -> list[str]:
        """Return the limits that it exceeds, in words."""
        measured = {
            "resources": (self.resources, RESOURCES),
            "outputs": (self.outputs, OUTPUTS),
            "bytes of template": (self.template_bytes, TEMPLATE_BYTES),
            "bytes of event to a custom resource": (self.largest_update_event_bytes, EVENT_BYTES),
        }
        return [f"{value} {what}, at most {most}" for what, (value, most) in measured.items() if value > most]


def sizes(templates: Templates) -> dict[str, Size]:
    """Return each stack's size."""
    return {
        name: Size.of(template, next(templates.directory.glob(f"*-{name}.template.json")).stat().st_size)
        for name, template in templates.by_stack.items()
    }


def exceeded_limits(templates: Templates) -> list[str]:
    """Return the limits that some stack exceeds, a line each."""
    return [f"{name}: {line}" for name, size in sizes(templates).items() for line in size.exceeded()]
