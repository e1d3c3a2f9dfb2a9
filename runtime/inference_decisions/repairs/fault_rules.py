"""What a hardware signal means: a table with a source per entry, of which this file is the reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from inference_contracts.health_names import FaultKind
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


@dataclass(frozen=True, slots=True)
class FaultRules:
    """The table of faults."""

    rules: Mapping[tuple[str, str], FaultRule]
    """Entries by kind and code."""

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
            )
            for entry in content["faults"]
            for code in entry["codes"]
        ]
        return cls({(rule.kind, rule.code): rule for rule in rules})

    def rule(self, kind: FaultKind, code: str) -> FaultRule | None:
        """Return what a code means. None if neither the code nor its kind has an entry."""
        return self.rules.get((kind, code)) or self.rules.get((kind, "*"))

    def evidence(self, signal: HardwareSignal) -> Evidence | None:
        """Return what a signal proves. None if it proves nothing about the hardware."""
        rule = self.rule(signal.kind, signal.code)
        if rule is None or not rule.counts:
            return None
        return Evidence(
            kind=signal.kind,
            code=signal.code,
            at=signal.at,
            source=signal.source,
            fatal=rule.fatal,
            figure=rule.seconds,
        )
