"""A case: one node, what speaks against it, and how far its replacement is. It is one item of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Self

from inference_contracts.health_names import ENDED_CASES, CaseState, FaultKind

#: Source of evidence that an alarm of CloudWatch has.
ALARM_SOURCE: Final = "alarm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One thing that speaks against a node."""

    kind: FaultKind
    code: str
    """Code within the kind, such as ``79`` for an XID, or the kind of verdict on a worker."""
    at: float
    """When it was seen, in seconds since the epoch."""
    source: str
    """Where it was seen, such as ``kernel-log``, ``node-condition``, ``dcgm`` or ``peers``."""
    fatal: bool
    """Whether it alone proves that the hardware is broken."""
    figure: float = 0.0
    """Size: the slowdown as a share, or the seconds for which a condition of a node has to last. Zero if it
    has none."""
    first_at: float = 0.0
    """When the same was first seen, in seconds since the epoch. Zero if `at` is the first time."""

    @property
    def mark(self) -> tuple[str, str, str]:
        """What makes two sightings the same evidence."""
        return self.kind, self.code, self.source

    @property
    def since(self) -> float:
        """When the same was first seen."""
        return self.first_at or self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairCase:
    """The state of one case."""

    platform: str
    cell: str
    """Its cluster."""
    pool: str
    node: str
    node_uid: str
    """`pool`, `node`, `node_uid`: The node that is suspected. Another node of the same name is another
    case."""
    state: CaseState
    """How far the case is."""
    opened_at: float
    """When the first evidence was seen. Later evidence does not change it: several errors in turn do not
    start the wait again."""
    changed_at: float
    """When the state last changed."""
    evidence: tuple[Evidence, ...]
    """What speaks against the node, oldest first; the newest of each kind, code and source."""
    attempts: int = 0
    """Failed attempts of the present step."""
    owner_name: str = ""
    """What was asked to replace it."""
    instance: str = ""
    """The instance that goes."""
    replacement: str = ""
    """Name of the node that replaced it. Empty until it serves."""
    reason: str = ""
    """Why the case is where it is: a code of `repair_guards` or `repair_steps`."""
    version: int = 0
    """Number of writes. A write succeeds only on the version that was read."""
    times: Mapping[str, float] = field(default_factory=dict)
    """When the case came to each state."""
    boot: str = ""
    """Identifier of the node's boot when the case was opened. Empty if it is not known."""

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.state in ENDED_CASES

    @property
    def fatal(self) -> bool:
        """Whether the node itself reports what proves it broken: no comparison with others does."""
        return any(each.fatal or each.kind == "node_condition" for each in self.evidence)

    def with_evidence(self, evidence: Evidence) -> Self:
        """Return the case with more evidence. The same evidence again replaces its older sighting."""
        others = tuple(each for each in self.evidence if each.mark != evidence.mark)
        first = min((each.since for each in self.evidence if each.mark == evidence.mark), default=0.0)
        return replace(self, evidence=(*others, replace(evidence, first_at=first)))

    def moved(self, state: CaseState, now: float, reason: str) -> Self:
        """Return the case in another state, with the time of the change."""
        if state == self.state:
            return replace(self, reason=reason)
        return replace(
            self, state=state, changed_at=now, reason=reason, attempts=0, times={**self.times, state: now}
        )

    def as_dict(self) -> dict[str, object]:
        """Return the item of the table, without its keys."""
        return {
            **asdict(self),
            "evidence": [asdict(each) for each in self.evidence],
            "times": dict(self.times),
        }


def opened_case(
    *, platform: str, cell: str, pool: str, node: str, node_uid: str, evidence: Evidence
) -> RepairCase:
    """Return a new case about a node.

    evidence: The first evidence.
    """
    return RepairCase(
        platform=platform,
        cell=cell,
        pool=pool,
        node=node,
        node_uid=node_uid,
        state="suspected",
        opened_at=evidence.at,
        changed_at=evidence.at,
        evidence=(evidence,),
        times={"suspected": evidence.at},
    )
