"""What a streaming job made of a replayed stream, as data and as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_blueprints.measure.statistics import Percentiles, amount, milliseconds
from inference_contracts.number_text import number

_UNKNOWN = Percentiles(None, None, None, None)


@dataclass(frozen=True, slots=True)
class EventToSignal:
    """Time from the newest event of a signal until readers saw the signal, in milliseconds."""

    p50: float | None = None
    p99: float | None = None
    """`p50`, `p99`: Percentiles outside of the outage. None without signals."""
    longest: float | None = None
    """The longest of all, with the outage."""


@dataclass(frozen=True, slots=True)
class StreamingOutcome:
    """What came of a stream."""

    job: str
    skipped: str | None = None
    """Why it did not run. None if it ran."""
    not_run: tuple[str, ...] = ()
    """Other jobs of the blueprint, which this run left out."""
    events: int = 0
    """Records that were sent."""
    sessions: int = 0
    """Sessions in them."""
    repeated: int = 0
    late: int = 0
    poison: int = 0
    """`repeated`, `late`, `poison`: Records that repeat an event, that came after their session was over, and
    that cannot be read."""
    signals: int = 0
    """Sessions whose newest version is visible to readers."""
    superseded: int | None = None
    """Versions that a newer one replaced before they were answered, as the job counts them, without those
    between the last look at its counters and the kill. None if its counters could not be read."""
    dead_letters: int = 0
    """Different dead letters."""
    dead_letter_reasons: Mapping[str, int] = field(default_factory=dict)
    """How many for each reason."""
    repeated_dead_letters: int = 0
    """How many were written again by the restart."""
    lost: int = 0
    duplicated: int = 0
    """`lost`, `duplicated`: What should be there and is not, and what is there twice."""
    kills: int = 0
    """How often the job's process was killed."""
    recovery_seconds: float | None = None
    """Time from the kill until the next signal was visible."""
    event_to_signal_ms: EventToSignal = EventToSignal()
    """Times from event to signal."""
    waiting_ms: Percentiles = _UNKNOWN
    """From each event until the call began that answered it: the debounce, newer events that replace its
    version, and a place among the calls."""
    processing_ms: Percentiles = _UNKNOWN
    """From the start of that call until readers saw the signal."""
    prefix_cache_hit_ratio: float | None = None
    """Share of the prompts' tokens that the engines had in their prefix caches, 0 to 1."""
    events_per_second: float = 0.0
    """Rate of the records."""

    @property
    def is_bad(self) -> bool:
        """Whether something was lost or came twice."""
        return self.skipped is None and bool(self.lost or self.duplicated)


def streaming_lines(outcome: StreamingOutcome, *, simulated: bool) -> list[str]:
    """Return sentences about a stream, for both the terminal and the report's page.

    simulated: Whether the answers come from simulated engines.
    """
    mark = " (simulated)" if simulated else ""
    if outcome.skipped is not None:
        return [f"Streaming job {outcome.job}: SKIPPED. {outcome.skipped}."]
    times, waits, works = outcome.event_to_signal_ms, outcome.waiting_ms, outcome.processing_ms
    reasons = ", ".join(f"{count} {reason}" for reason, count in outcome.dead_letter_reasons.items())
    superseded = "unknown" if outcome.superseded is None else f"{outcome.superseded:,}"
    hits = outcome.prefix_cache_hit_ratio
    lines = [
        f"Streaming job {outcome.job}{mark}: {amount(outcome.events, 'event')} of "
        f"{amount(outcome.sessions, 'session')}, {number(outcome.events_per_second)} per second; "
        f"{outcome.repeated} of them repeated, {outcome.late} late, {outcome.poison} unreadable.",
        f"{outcome.signals:,} of {outcome.sessions:,} sessions have the signal of their newest "
        f"version; {superseded} versions superseded; {amount(outcome.dead_letters, 'dead letter')}"
        + (f" ({reasons})" if reasons else "")
        + f"; {outcome.lost} lost, {outcome.duplicated} duplicated.",
        f"From event to signal{mark}: p50 {milliseconds(times.p50)} ms, p99 {milliseconds(times.p99)} ms, "
        "with the time in which events wait for others of their session.",
        f"Of it{mark}: an event waits p50 {milliseconds(waits.p50)} ms, p99 {milliseconds(waits.p99)} ms for "
        "the debounce, for newer events that replace its version, and for a place among the calls; from "
        f"the call to the signal p50 {milliseconds(works.p50)} ms, p99 {milliseconds(works.p99)} ms.",
    ]
    if outcome.kills:
        recovery = (
            "no signal came after it"
            if outcome.recovery_seconds is None
            else (f"the next signal was there after {outcome.recovery_seconds:.1f} s")
        )
        lines.append(
            "The job's process was killed in the middle and started again from its newest checkpoint: "
            f"{recovery}. The longest time from event to signal, with this, is "
            f"{milliseconds(times.longest)} ms. {outcome.repeated_dead_letters} dead letters were written "
            "again."
        )
    shown = "unknown" if hits is None else f"{hits:.1%}"
    lines.append(f"Prefix cache hits{mark}: {shown} of the prompt tokens.")
    if outcome.not_run:
        lines.append(f"Not run here: {', '.join(outcome.not_run)}.")
    return lines
