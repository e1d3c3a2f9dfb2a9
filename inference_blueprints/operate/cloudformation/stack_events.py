"""The events of a deployment, and advice for the usual reasons of a failed one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.synthesis import stack_templates

#: Pattern of an error message of AWS, Helm or the CDK, and what to do. The first match counts.
_ADVICE = (
    (
        r"has (it|the environment) been bootstrapped|/cdk-bootstrap/\S+ not found|bootstrap stack version",
        "run `blueprints bootstrap {name}` and deploy again",
    ),
    (
        r"credentials|ExpiredToken|security token .* (expired|invalid)|InvalidClientTokenId",
        "sign in to the blueprint's account and deploy again; `blueprints doctor {name}` checks it",
    ),
    (
        r"terminal \(TTY\) is not attached",
        "deploy from a terminal to approve the change, or add --require-approval never",
    ),
    (
        r"VcpuLimitExceeded|LimitExceeded|quota|limit (has been|was) (reached|exceeded)|TooMany\w+",
        "request a higher quota; `blueprints doctor {name}` shows which one, and the command",
    ),
    (
        r"InsufficientInstanceCapacity|Insufficient capacity",
        "AWS has no free instance there now: add instance types or zones to the pool, or reserve capacity",
    ),
    (
        r"not authorized to perform|AccessDenied|UnauthorizedOperation",
        "add this permission to the role that deploys, then deploy again",
    ),
    (
        r"another operation \(install/upgrade/rollback\) is in progress",
        "a Helm release is stuck: remove its model from the blueprint, deploy, add it and deploy again",
    ),
    (
        r"already exists",
        "another resource has this name: delete it or rename the platform, then deploy again",
    ),
    (
        r"ROLLBACK_COMPLETE|ROLLBACK_FAILED|DELETE_FAILED",
        "the stack is left from a failed deployment: `blueprints destroy {name}` deletes it",
    ),
    (
        r"_IN_PROGRESS",
        "another deployment is running: wait for its end, then deploy again",
    ),
    (
        r"unknown field|field not declared in schema|strict decoding error|no matches for kind",
        "the cluster has a different version of this resource definition than this library expects",
    ),
    (
        r"timed out|exceeded timeout|context deadline exceeded",
        "check the pods of that release with kubectl; when they are ready, deploy again",
    ),
)


def advice(reason: str, name_or_path: str) -> str | None:
    """Return what a user can do about a failure.

    reason: Error message of AWS, Helm or the CDK.
    name_or_path: The blueprint, for commands.
    Returns: None if no pattern matches.
    """
    for pattern, what_to_do in _ADVICE:
        if re.search(pattern, reason, re.IGNORECASE):
            return what_to_do.format(name=name_or_path)
    return None


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
        for file in stack_templates(assembly_directory)
    }
