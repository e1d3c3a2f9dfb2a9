"""What callers got through the front door and what it cost, as data and as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_blueprints.measure.statistics import amount
from inference_contracts.number_text import number

#: Share of the limit that must be spent when the budget refuses for good.
LEAST_SPENT = 0.9
#: How far the sum of the records may be from what the models counted, in parts of it.
_EQUAL_SHARE = 0.01
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class CanaryOutcome:
    """Conversations with a model whose requests go to several targets."""

    model: str
    """Its public name."""
    conversations: int
    """Conversations, each with several requests."""
    by_target: Mapping[str, int]
    """How many stayed at each target."""
    moved: int
    """Conversations whose requests went to more than one target."""


@dataclass(frozen=True, slots=True)
class ShedOutcome:
    """Requests that came while a model was full."""

    model: str
    """Its public name."""
    urgent: int
    urgent_refused: int
    """`urgent`, `urgent_refused`: Requests of the highest priority, and how many of them were refused."""
    low: int
    low_refused: int
    """`low`, `low_refused`: Requests of the lowest priority, and how many of them were refused."""
    low_retried: int
    """Refused ones that were answered when they came again, after the time that the refusal named."""


@dataclass(frozen=True, slots=True)
class FrontDoorOutcome:
    """What came of the load of a run's front door."""

    replicas: int
    requests: int
    """Requests of all callers, without the repetitions of their clients."""
    failures: int
    """Requests that got neither a whole answer nor a refusal that was due. Without streams that were cut on
    purpose or that a killed replica was sending."""
    failure_reasons: Mapping[str, int]
    """How many for each reason."""
    refused: int
    """Requests that were refused because a budget was used up or a model was full."""
    refusals: Mapping[str, int]
    """How many with each code of OpenAI's API."""
    team: str
    """The team whose budget was used up, while a replica was killed. Empty if there was none."""
    spent_usd: float
    """What its requests cost, by the counters of the models' own frontends. Without such counters, by the
    tokens that its clients counted."""
    ledger_usd: float
    """What the ledger has charged it. It has more than `spent_usd` if a replica was killed that was
    answering: the ledger keeps what was reserved for such requests."""
    limit_usd: float
    overspend_usd: float
    """`limit_usd`, `overspend_usd`: Its limit, and what was spent beyond it."""
    unrecorded_usd: float
    """What of `spent_usd` no usage record has: a killed replica takes the lines of its log that Envoy has not
    written yet. The ledger has the reservations of these requests. Below zero if requests that the replica
    did not finish were charged as reserved, for more than they had cost."""
    reserved_usd: float
    """What the usage records of requests that were charged as reserved have."""
    recorded_usd: float
    """What the requests of all other teams cost, by the usage records. No replica was killed meanwhile."""
    counted_usd: float | None
    """The same by the counters of the models' own frontends. None if they have none."""
    cut_streams: int
    """Streams that their callers ended before the last chunk."""
    cut_streams_charged: int
    """Those that were charged for every token that the caller got. Tokens that were under way when it hung up
    are charged too."""
    cut_tokens_charged: int
    cut_tokens_counted: int | None
    """`cut_tokens_charged`, `cut_tokens_counted`: Tokens of their answers, by the usage records and by the
    counters of the models' own frontends. None if they have none."""
    killed_replicas: int
    """Replicas that were killed with SIGKILL, Envoy and policy, and started again."""
    lost_with_replica: int
    """Requests that a killed replica was answering, and that their clients did not repeat."""
    added_p50_ms: float | None
    """Median of the time that the door adds to a request, in milliseconds. None if times mean nothing."""
    canary: CanaryOutcome | None = None
    """None if no model has two targets with a weight."""
    shed: ShedOutcome | None = None
    """None if no model states how many requests it answers at once."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """What was left out, with the reason."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What went wrong, a few words each."""
        shed, canary = self.shed, self.canary
        found = {
            "requests failed": self.failures > 0,
            "more was spent than the limit": self.overspend_usd > 0,
            "no budget refused": bool(self.team) and "insufficient_quota" not in self.refusals,
            "the budget refused long before its limit": self.ledger_usd < LEAST_SPENT * self.limit_usd,
            "the ledger has less than was spent": self.ledger_usd < self.spent_usd,
            "cut streams were not charged": self.cut_streams_charged < self.cut_streams,
            "cut streams were not charged to the chunk": self._is_off_by_chunks(),
            "records and models count differently": self._differ(),
            "more was recorded than spent": self._has_too_much(),
            "conversations moved": canary is not None and canary.moved > 0,
            "urgent requests were refused": shed is not None and shed.urgent_refused > 0,
            "nothing was refused while the model was full": shed is not None and not shed.low_refused,
        }
        return tuple(words for words, is_so in found.items() if is_so)

    @property
    def is_bad(self) -> bool:
        """Whether something went wrong."""
        return bool(self.faults)

    def _has_too_much(self) -> bool:
        """Return whether the records of finished requests have more than was spent."""
        return self.unrecorded_usd + self.reserved_usd < -_EQUAL_SHARE * self.spent_usd

    def _is_off_by_chunks(self) -> bool:
        """Return whether cut streams were charged for more than a chunk each beside what was generated."""
        if self.cut_tokens_counted is None:
            return False
        return abs(self.cut_tokens_charged - self.cut_tokens_counted) > self.cut_streams

    def _differ(self) -> bool:
        """Return whether the records have more or less than the models counted."""
        if self.counted_usd is None:
            return False
        return abs(self.counted_usd - self.recorded_usd) > _EQUAL_SHARE * self.counted_usd


def front_door_lines(outcome: FrontDoorOutcome, *, simulated: bool) -> list[str]:
    """Return sentences about the front door, for both the terminal and the report's page.

    simulated: Whether answers and times come from simulated engines.
    """
    mark = " (simulated)" if simulated else ""
    reasons = ", ".join(f"{count} {reason}" for reason, count in outcome.failure_reasons.items())
    codes = ", ".join(f"{count} {code}" for code, count in outcome.refusals.items())
    lines = [
        f"Front door, {amount(outcome.replicas, 'replica')}: {amount(outcome.requests, 'request')}, "
        f"{amount(outcome.failures, 'failure')}" + (f" ({reasons})" if reasons else "") + ", "
        f"{outcome.refused} refused" + (f" ({codes})." if codes else "."),
        *(
            [
                f"Budget of team {outcome.team}{mark}: {_usd(outcome.spent_usd)} spent, "
                f"{_usd(outcome.ledger_usd)} in the ledger, limit {_usd(outcome.limit_usd)}, "
                f"{_usd(outcome.overspend_usd)} beyond it."
            ]
            if outcome.team
            else []
        ),
        (f"Other teams{mark}, before a replica was killed" if outcome.team else f"All teams{mark}")
        + f": {_usd(outcome.recorded_usd)} in the usage records, "
        + (
            "not counted by the models' frontends."
            if outcome.counted_usd is None
            else f"{_usd(outcome.counted_usd)} by the counters of the models' frontends."
        ),
        f"Cut streams: {outcome.cut_streams}, {outcome.cut_streams_charged} of them charged; "
        f"{outcome.cut_tokens_charged} tokens in the usage records"
        + (
            "."
            if outcome.cut_tokens_counted is None
            else f", {outcome.cut_tokens_counted} by the models' frontends."
        ),
    ]
    if outcome.team:  # its load is the one during which a replica is killed
        lines.append(
            f"{amount(outcome.killed_replicas, 'replica')} killed and started again while it answered: "
            f"{amount(outcome.lost_with_replica, 'request')} lost with it{_records(outcome.unrecorded_usd)}."
        )
    if (canary := outcome.canary) is not None:
        shares = ", ".join(f"{count} at {target}" for target, count in canary.by_target.items())
        lines.append(
            f"Canary of {canary.model}: {amount(canary.conversations, 'conversation')}, {shares}, "
            f"{canary.moved} moved."
        )
    if (shed := outcome.shed) is not None:
        lines.append(
            f"While {shed.model} was full: {shed.low_refused} of {shed.low} requests of the lowest priority "
            f"refused, {shed.urgent_refused} of {shed.urgent} of the highest; {shed.low_retried} answered "
            "when they came again."
        )
    added = (
        f"The door adds {outcome.added_p50_ms:.2f} ms to a request (p50), against the model's own "
        "endpoint in turns, on this machine."
        if outcome.added_p50_ms is not None
        else "What the door adds to a request was not measured: times mean nothing with these engines."
    )
    lines += [added, *outcome.notes]
    if outcome.faults:
        lines.append(f"Not as it should be: {', '.join(outcome.faults)}.")
    return lines


def short_front_door(outcome: FrontDoorOutcome, *, simulated: bool) -> str:
    """Return a sentence for the short report.

    simulated: Whether answers come from simulated engines.
    """
    mark = " (simulated)" if simulated else ""
    spent, killed = "", ""
    if outcome.team:
        spent = (
            f"; {_usd(outcome.spent_usd)} of {_usd(outcome.limit_usd)} spent{mark}, "
            f"{_usd(outcome.overspend_usd)} beyond"
        )
        killed = f"; {outcome.killed_replicas} of {amount(outcome.replicas, 'replica')} killed"
    return (
        f"{amount(outcome.requests, 'request')}, {amount(outcome.failures, 'failure')}, "
        f"{outcome.refused} refused{spent}; {outcome.cut_streams_charged} of {outcome.cut_streams} cut "
        f"streams charged{killed}"
        + (f". Not as it should be: {', '.join(outcome.faults)}" if outcome.faults else "")
    )


def _records(unrecorded_usd: float) -> str:
    """Return what the usage records lack or have too much, after the loss of a replica."""
    if unrecorded_usd >= 0:
        return f", and the usage records of {_usd(unrecorded_usd)}, which the ledger has"
    return f"; the usage records have {_usd(-unrecorded_usd)} too much, of cut answers charged as reserved"


def _usd(value: float) -> str:
    return f"{number(value, _DIGITS)} USD"
