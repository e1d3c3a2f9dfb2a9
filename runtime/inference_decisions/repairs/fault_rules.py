"""What a hardware signal means: a table with a source per entry, of which this file is the reader."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from inference_contracts.health_names import FaultKind, Remedy
from inference_decisions.repairs.repair_case import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareSignal:
    """One report about a node's hardware: of the kernel log, a node condition, a metric or EC2."""

    kind: FaultKind
    code: str
    """Code within the kind, such as ``79``."""
    node: str
    at: float
    """When it was seen, in seconds since the epoch."""
    source: str
    """Where it was seen."""
    reason: str = ""
    """Reason that the node monitoring agent gives. The table says which kind and code it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """What one signal means."""

    kind: FaultKind
    code: str
    """`kind`, `code`: The signal. The code ``*`` stands for all codes of the kind that have no entry."""
    says: str
    """What it is, for people."""
    fatal: bool
    """Whether it alone proves that the hardware has to go."""
    counts: bool
    """Whether it counts as evidence at all. Errors of applications do not."""
    source: str
    """Where that is documented."""
    seconds: float = 0.0
    """How long it has to last to prove that, if it is a condition of a node. Zero if time proves nothing."""
    remedy: Remedy = "replace"
    """What mends it."""


@dataclass(frozen=True, slots=True)
class AgentReason:
    """A reason of a condition that the EKS node monitoring agent sets, and the fault that it means."""

    reason: re.Pattern[str]
    """The reason. A group is the code of the fault."""
    kind: FaultKind
    code: str
    """Code of the fault. Empty if it is in the reason."""


@dataclass(frozen=True, slots=True)
class FaultRules:
    """The table of faults."""

    rules: Mapping[tuple[str, str], FaultRule]
    """Entries by kind and code."""
    reasons: Sequence[AgentReason] = ()
    """Reasons of the node monitoring agent. The first that matches counts."""

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Return the table of a file.

        text: The contents of `gpu_faults.json` of the catalogue.
        """
        content = json.loads(text)
        sources: dict[str, str] = content["sources"]
        rules = [
            FaultRule(
                kind=entry["kind"],
                code=str(code),
                says=entry["says"],
                fatal=entry["meaning"] == "fatal",
                counts=entry["meaning"] != "ignored",
                source=sources[entry["source"]],
                seconds=float(entry.get("seconds", 0.0)),
                remedy=entry.get("remedy", "replace"),
            )
            for entry in content["faults"]
            for code in entry["codes"]
        ]
        reasons = [
            AgentReason(
                re.compile(re.escape(entry["reason"]).replace("%d", r"(\d+)")),
                entry["kind"],
                entry.get("code", ""),
            )
            for entry in content["agent"]["reasons"]
            if entry["kind"]
        ]
        return cls({(rule.kind, rule.code): rule for rule in rules}, reasons)

    def fault(self, reason: str) -> tuple[FaultKind, str]:
        """Return kind and code of a reason of the node monitoring agent.

        One that the table does not have proves nothing alone.
        """
        for each in self.reasons:
            if found := each.reason.fullmatch(reason):
                return each.kind, each.code or found[1]
        return ("neuron" if reason.startswith("Neuron") else "dcgm"), reason

    def remedy(self, kind: FaultKind, code: str) -> Remedy:
        """Return what mends a fault. Another instance if it has no entry."""
        rule = self.rule(kind, code)
        return "replace" if rule is None else rule.remedy

    def rule(self, kind: FaultKind, code: str) -> FaultRule | None:
        """Return what a code means. None if neither the code nor its kind has an entry."""
        return self.rules.get((kind, code)) or self.rules.get((kind, "*"))

    def evidence(self, signal: HardwareSignal) -> Evidence | None:
        """Return what a signal proves. None if it proves nothing about the hardware."""
        kind, code = self.fault(signal.reason) if signal.reason else (signal.kind, signal.code)
        rule = self.rule(kind, code)
        if rule is None or not rule.counts:
            return None
        return Evidence(
            kind=kind,
            code=code,
            at=signal.at,
            source=signal.source,
            fatal=rule.fatal,
            figure=rule.seconds,
        )
