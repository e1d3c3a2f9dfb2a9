"""What a change does to the processes of models: which arguments differ, and which processes restart.

The old arguments are those of the deployed templates. They are not planned again from the blueprint or its
lock: another release of this library plans other arguments from the same file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from inference_blueprints.operate.changes.platform_change import (
    REFERENCE,
    Finding,
    PlatformChange,
    Template,
    spelled,
)
from inference_blueprints.operate.check_results import CheckResult, Severity
from inference_contracts.ecs_names import MAIN_CONTAINER
from inference_contracts.records import dataclass
from inference_contracts.task_tags import LABEL_TAGS

PROCESS_CHECK = "processes"
_CHART = "Custom::AWSCDK-EKS-HelmChart"
_SERVICE = "AWS::ECS::Service"
_MODEL_STACK = "-Model-"
#: Name of the words before the first option, such as ``vllm serve``.
_COMMAND = "command"
#: Values that only say how many pods there are, or how they are replaced.
_NUMBERS = frozenset({"name", "role", "command", "arguments", "replicas", "scaling", "lent"})
#: Values of a release that are in the pods of all its processes. Others are in objects of their own.
_SHARED = ("serviceAccount", "secrets", "weightsBucket", "kvCacheBucket")
#: References to another stack. Releases write them differently, and what they refer to stays.
_OTHER_STACK = frozenset({"Fn::ImportValue", "Fn::GetStackOutput"})
_LONGEST_SHOWN = 300
#: As many characters of a digest as git shows of a commit, and more than enough to tell two archives apart.
_ARCHIVE_CHARACTERS = 12
_WORDS: Mapping[str, str] = {
    "followerArguments": "arguments of further nodes",
    "nodeCache": "cache of the node",
    "metricLabels": "labels of metrics",
    "preStopSeconds": "time before it stops",
    "terminationGraceSeconds": "time to stop",
}


Effect = Literal["starts", "restarts", "ends", "unknown"]
_SEVERITIES: Mapping[Effect, Severity] = {
    "starts": "ok",
    "restarts": "warning",
    "ends": "warning",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """An argument that differs."""

    name: str
    """The option, such as ``--max-num-seqs``; ``command`` for the words before the first option."""
    old: str | None
    new: str | None
    """`old`, `new`: Its value; empty for an option without one, and None if the option is not there."""

    def __str__(self) -> str:
        """Return what changes."""
        if self.old is None:
            return f"{' '.join(filter(None, (self.name, _shown(self.new or ''))))} added"
        if self.new is None:
            return f"{' '.join(filter(None, (self.name, _shown(self.old))))} removed"
        return f"{self.name} {_shown(self.old) or '(no value)'} -> {_shown(self.new) or '(no value)'}"


@dataclass(frozen=True, slots=True)
class ProcessChange:
    """A process whose definition differs from the deployed one."""

    model: str
    deployment: str
    role: str
    arguments: tuple[ArgumentChange, ...]
    """Arguments that differ."""
    parts: tuple[str, ...]
    """What else of its pod or task differs."""
    effect: Effect
    """What happens to its pods or tasks. ``unknown`` if only the chart of its release differs: the templates
    do not say what that does to pods."""
    why: str
    """Why, and how many are replaced at a time."""

    def __str__(self) -> str:
        """Return the line for people."""
        parts = [f"also changed: {', '.join(self.parts)}"] if self.parts else []
        said = "; ".join([*map(str, self.arguments), *parts, self.why])
        return f"model '{self.model}' deployment '{self.deployment}' ({self.role}): {said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult(CheckResult):
    """The result for a process that changes."""

    change: ProcessChange
    """What changes."""


def changed_processes(change: PlatformChange) -> Iterator[Finding]:
    """Say which processes of models get other arguments, and which restart.

    A process restarts if its pod template or task definition differs. A new number of replicas alone restarts
    none.
    """
    for stack, template in change.deployed.items():
        if stack not in change.new:
            continue
        old, new = (
            {each.key: each for each in processes(stack, templates)}
            for templates in (template, change.new[stack])
        )
        # Dynamo replaces all workers of a graph together.
        moving = {new[key].together for key in old.keys() & new.keys() if _differs(old[key], new[key])}
        for key in dict.fromkeys([*new, *old]):
            found = _compared(old.get(key), new.get(key), moving - {None})
            if found:
                yield ProcessResult(PROCESS_CHECK, _SEVERITIES[found.effect], str(found), change=found)


def has_processes(change: PlatformChange) -> bool:
    """Whether a process of a model is deployed."""
    return any(True for stack, each in change.deployed.items() for _ in processes(stack, each))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """A process as a template defines it."""

    model: str
    release: str
    role: str
    resource: str
    """ECS service. Empty on EKS."""
    words: tuple[str, ...]
    """Its program and the arguments."""
    parts: Mapping[str, Any]
    """Everything else in its pod or task, by name."""
    chart: Any
    """Chart of its release. None on ECS."""
    together: str | None
    """Release whose workers are all replaced if one of them changes. None if it is replaced alone."""
    rollout: str
    """What a restart does."""

    @property
    def key(self) -> tuple[str, str]:
        """What stays the same in every release. A deployment has one process of each role."""
        return self.release, self.role

    @property
    def deployment(self) -> str:
        """Name of the deployment in its model."""
        return self.release.removeprefix(f"{self.model}-")


def _differs(old: _Process, new: _Process) -> bool:
    return old.words != new.words or old.parts != new.parts


def _compared(
    old: _Process | None, new: _Process | None, moving: Collection[str | None]
) -> ProcessChange | None:
    """Return what differs; None if nothing does.

    moving: Releases whose workers are all replaced.
    """
    if new is None:
        return ProcessChange(old.model, old.deployment, old.role, (), (), "ends", "it ends") if old else None
    if old is None:
        return ProcessChange(new.model, new.deployment, new.role, (), (), "starts", "it is new")
    effect: Effect = "restarts"
    arguments = tuple(_argument_changes(old.words, new.words))
    parts = sorted(
        _WORDS.get(name, name)
        for name in old.parts.keys() | new.parts.keys()
        if old.parts.get(name) != new.parts.get(name)
    )
    if old.resource != new.resource:
        # CloudFormation creates what is new before it deletes what is not in the template any more
        # (CloudFormation User Guide, "Stack status codes": UPDATE_COMPLETE_CLEANUP_IN_PROGRESS).
        why = "a new service takes its place, and the old one ends when the new one is stable"
    elif _differs(old, new):
        why = new.rollout
    elif new.together in moving:
        why = f"another worker of its deployment changes, and Dynamo replaces all of them: {new.rollout}"
    elif old.chart != new.chart:
        effect = "unknown"
        # A rollout begins only if the pod template changes (Kubernetes documentation, "Deployments",
        # "Updating a Deployment"). The deployed chart is not here to be rendered.
        why = (
            f"its values stay, and the archive of its chart changes ({_archive(old)} -> {_archive(new)}); if "
            f"the new one writes its pods differently, {new.rollout}, else none does"
        )
    else:
        return None
    return ProcessChange(new.model, new.deployment, new.role, arguments, tuple(parts), effect, why)


def _archive(process: _Process) -> str:
    """Return the version of a process's chart, or the beginning of the name of its archive."""
    address = json.dumps(process.chart["ChartAssetURL"])
    name = re.search(r"/(\w+)\.\w+[^/]*$", address)
    return str(process.chart["Version"] or (name[1][:_ARCHIVE_CHARACTERS] if name else address))


def _argument_changes(old: Sequence[str], new: Sequence[str]) -> Iterator[ArgumentChange]:
    before, after = _options(old), _options(new)
    for name in dict.fromkeys([*after, *before]):
        if before.get(name) != after.get(name):
            yield ArgumentChange(name, before.get(name), after.get(name))


def _options(words: Sequence[str]) -> dict[str, str]:
    """Return values by option. Those of an option that is given several times follow each other."""
    values: dict[str, list[str]] = {_COMMAND: []}
    name = _COMMAND
    for word in words:
        if not word.startswith("--"):
            values[name].append(word)
            continue
        name, _, value = word.partition("=")
        values.setdefault(name, []).extend([value] if value else [])
    return {name: " ".join(each) for name, each in values.items()}


def _shown(value: str) -> str:
    text = value.replace(REFERENCE, "(set by the deployment)")
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({len(text)} characters)"


# Processes of a template


def processes(stack: str, template: Template) -> Iterator[_Process]:
    """Yield the processes of models in a stack's template."""
    resources = template.get("Resources", {})
    for name, resource in resources.items():
        properties = resource.get("Properties", {})
        if resource["Type"] == _CHART and _MODEL_STACK in stack and "Values" in properties:
            yield from _released(stack.partition(_MODEL_STACK)[2], properties)
        elif resource["Type"] == _SERVICE:
            tags = {each["Key"]: each["Value"] for each in properties.get("Tags", ())}
            labels = {label: tags.get(tag) for label, tag in LABEL_TAGS.items()}
            task = resources.get(properties.get("TaskDefinition", {}).get("Ref"))
            if task and labels["model"] and labels["release"] and labels["role"]:
                yield _service(name, labels, properties, task["Properties"])


def _released(model: str, properties: Mapping[str, Any]) -> Iterator[_Process]:
    """Yield the processes of a Helm release. The values of its chart are in the template."""
    values: dict[str, Any] = json.loads(spelled(properties["Values"]))
    found = values.get("processes", [])
    is_dynamo = "framework" in values
    in_groups = is_dynamo and any(each.get("nodes", 1) > 1 for each in found)
    release = str(properties["Release"])
    chart = {name: properties.get(name) for name in ("ChartAssetURL", "Chart", "Version", "Repository")}
    for each in found:
        words, programs = _without_programs([*each["command"], *each["arguments"]])
        is_worker = each["role"] != "frontend"
        # Strategies of Deployments are outside their pod templates. Dynamo's are annotations of pods.
        left_out = _NUMBERS if is_dynamo else _NUMBERS | {"rollout"}
        parts = {name: value for name, value in each.items() if name not in left_out}
        parts |= {name: values[name] for name in _SHARED if name in values}
        if any(sidecar.get("certificates") for sidecar in each.get("sidecars", ())):
            parts["certificate"] = values.get("certificate")
        if not is_worker and "picker" in values:
            parts["picker"] = values["picker"]
        if programs:
            parts["program"] = programs
        rollout = each["rollout"]
        # Grove replaces one at a time, whatever the annotations say, and only what changes. Otherwise
        # Dynamo's operator replaces all workers if the hash of one differs (ai-dynamo/dynamo,
        # docs/pages/kubernetes/rolling-update.md, "Default Behavior" and "Managed Rolling Updates").
        missing, extra = (1, 0) if in_groups else (rollout["maxUnavailable"], rollout["maxSurge"])
        count = None if each.get("scaling") or each.get("lent") else each["replicas"]
        yield _Process(
            resource="",
            model=model,
            release=release,
            role=each["role"],
            words=words,
            parts=parts,
            chart=chart,
            together=release if is_dynamo and is_worker and not in_groups else None,
            rollout=_rollout(each["role"], count, missing, extra),
        )


def _service(
    name: str, labels: Mapping[str, Any], service: Mapping[str, Any], task: Mapping[str, Any]
) -> _Process:
    """Return the process of an ECS service."""
    containers = {str(each["Name"]): each for each in task["ContainerDefinitions"]}
    main = containers.pop(MAIN_CONTAINER)
    words, programs = _without_programs(
        [spelled(word) for word in (*main.get("EntryPoint", ()), *main.get("Command", ()))]
    )
    rest = {
        f"{key[0].lower()}{key[1:]}": _comparable(value)
        for definition in (task, main)
        for key, value in definition.items()
        if key not in {"ContainerDefinitions", "EntryPoint", "Command", "Name", "Tags"}
    }
    if containers:
        rest["containers beside it"] = _comparable(containers)
    if programs:
        rest["program"] = programs
    # A new nonce begins a new deployment of the same task definition (Amazon ECS API Reference,
    # UpdateService, forceNewDeployment).
    rest["capacity providers"] = service.get("ForceNewDeployment", {}).get("ForceNewDeploymentNonce")
    limits = service["DeploymentConfiguration"]
    least, most = limits["MinimumHealthyPercent"], limits["MaximumPercent"]
    count = service.get("DesiredCount")
    return _Process(
        resource=name,
        model=str(labels["model"]),
        release=str(labels["release"]),
        role=str(labels["role"]),
        words=words,
        parts=rest,
        chart=None,
        together=None,
        # ECS rounds the smallest number up and the largest down (API Reference, DeploymentConfiguration).
        rollout=f"its {_noun(labels['role'])}s restart; ECS keeps {least}% to {most}% of them running"
        if count is None
        else _rollout(labels["role"], count, count - -(-count * least // 100), count * most // 100 - count),
    )


def _without_programs(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a process without the text of our programs that start it, and these texts."""
    kept: list[str] = []
    programs: list[str] = []
    previous = ("", "")
    for word in words:
        if previous == ("python3", "-c"):
            kept.pop()
            programs.append(word)
        else:
            kept.append(word)
        previous = (previous[1], word)
    if "--" in kept:  # a program of ours, which starts what follows
        kept = kept[kept.index("--") + 1 :]
    return tuple(kept), tuple(programs)


def _comparable(value: Any) -> Any:
    """Return a value in which references to other stacks are the same."""
    if isinstance(value, Mapping):
        if value.keys() & _OTHER_STACK:
            return REFERENCE
        return {name: _comparable(each) for name, each in value.items()}
    return [_comparable(each) for each in value] if isinstance(value, list) else value


def _noun(role: str) -> str:
    return "frontend" if role == "frontend" else "worker"


def _rollout(role: str, count: int | None, missing: int, extra: int) -> str:
    """Return what a restart does, in words.

    count: Number of replicas; None if it follows the load.
    missing, extra: Replicas below and above the number, at a time.
    """
    noun = _noun(role)
    if count == 0:
        return "none runs now"
    if count == 1 and missing:
        return f"its only {noun} restarts, and none answers in its place until it is ready"
    subject = (
        f"its only {noun} restarts" if count == 1 else f"its {count or ''} {noun}s restart".replace("  ", " ")
    )
    if not missing:
        return f"{subject}, each after its successor is ready"
    if missing == 1 and not extra:
        return f"{subject} one after the other"
    all_of_them = ", which is all of them" if count is not None and missing >= count else ""
    return f"{subject}, with at most {missing} missing{all_of_them} and {extra} extra at a time"
