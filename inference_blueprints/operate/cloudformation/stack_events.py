"""Reads the events of a deployment from the CDK command line's output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TEMPLATE = ".template.json"
# `stack |  3/15 | 8:58:17 AM | CREATE_FAILED        | AWS::EC2::VPC | Vpc/Resource (Vpc8378EB38) reason`
_EVENT = re.compile(
    r"^(?P<stack>\S+) \| +\S+ \| [^|]+ \| (?P<status>[A-Z_]+) +"
    r"\| (?P<type>\S+) +\| (?P<resource>\S+)(?: \(\w+\))?(?P<reason>.*)$"
)
# ` ✅  quickstart-Data (no changes)`
_FINISHED = re.compile(r"^ *✅ +(?P<stack>[\w-]+)(?: \(.*\))?$")
_CONSEQUENCE = re.compile(
    r"(Resource (creation|update|deletion) cancelled|Operation cancelled)", re.IGNORECASE
)


@dataclass(frozen=True)
class ResourceEvent:
    """One line of a deployment's progress."""

    stack: str
    status: str
    resource_type: str
    resource: str
    """Path of the construct, or the logical id."""
    reason: str
    """Why it failed; empty otherwise."""

    @property
    def is_complete(self) -> bool:
        """Whether a resource is ready; the stack itself does not count."""
        is_stack = self.resource_type == "AWS::CloudFormation::Stack"
        return self.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE") and not is_stack

    @property
    def is_failure(self) -> bool:
        """Whether the resource failed."""
        return self.status.endswith("_FAILED")

    @property
    def is_cause(self) -> bool:
        """Whether the resource failed by itself, and not because another one failed."""
        return self.is_failure and bool(self.reason) and not _CONSEQUENCE.search(self.reason)


def parse_event(line: str) -> ResourceEvent | None:
    """Read a line of ``cdk deploy --progress events``.

    Returns: None if the line is not about a resource, such as the summary at the end that repeats failures.
    """
    match = _EVENT.match(line)
    if match is None:
        return None
    return ResourceEvent(
        stack=match["stack"],
        status=match["status"],
        resource_type=match["type"],
        resource=match["resource"],
        reason=match["reason"].strip(),
    )


def finished_stack(line: str) -> str | None:
    """Return the stack that a line of ``cdk deploy`` reports as deployed, changed or not."""
    match = _FINISHED.match(line)
    return match["stack"] if match else None


def causes(failures: Sequence[ResourceEvent]) -> list[str]:
    """Return one line per failure: stack, resource, reason."""
    return [f"{each.stack}: {each.resource_type} {each.resource}: {each.reason}" for each in failures]


def resource_counts(assembly_directory: Path) -> Mapping[str, int]:
    """Return how many resources each stack of a synthesised app has, for a progress bar.

    assembly_directory: The folder that ``cdk synth`` wrote, usually ``cdk.out``.
    """
    return {
        file.name.removesuffix(_TEMPLATE): len(json.loads(file.read_text()).get("Resources", {}))
        for file in sorted(assembly_directory.glob(f"*{_TEMPLATE}"))
    }
