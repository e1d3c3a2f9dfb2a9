"""Rules on the signal store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import duplicate_names, rule
from inference_blueprints.spec.types import Signal, Spec
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion
from inference_contracts.errors import Finding

_SIGNALS: Path = ("spec", "signalStore", "signals")


@rule
def something_fills_the_store(spec: Spec) -> Iterator[Finding]:
    """Check that a platform with a signal store has batch or streaming, whose jobs write to it."""
    if spec.signal_store and spec.batch is None and not spec.streaming:
        yield Finding(
            ("spec", "signalStore"),
            "nothing writes to the store without batch or streaming; add spec.batch or spec.streaming, or "
            "remove this section",
        )


@rule
def signals_differ(spec: Spec) -> Iterator[Finding]:
    """Check that signals have different names."""
    names: dict[Path, str] = {
        (*_SIGNALS, index, "name"): signal.name for index, signal in usable(_signals(spec))
    }
    yield from duplicate_names("signal", names)


@rule
def signal_has_a_team(spec: Spec) -> Iterator[Finding]:
    """Check that the team of a signal is in the blueprint."""
    known = list(dict.fromkeys(team.name for team in spec.teams))
    for index, signal in usable(_signals(spec)):
        if known and signal.team not in known:
            message = f"got {quote(signal.team)}, {allowed('team', known)}{suggestion(signal.team, known)}"
            yield Finding((*_SIGNALS, index, "team"), message)


@rule
def schedules_write_signals_of_their_team(spec: Spec) -> Iterator[Finding]:
    """Check that the signal of a schedule belongs to its team."""
    owners = {signal.name: signal.team for signal in _signals(spec)}
    for index, schedule in usable(spec.batch.schedules if spec.batch else ()):
        name = schedule.manifest.signal
        if name is None or owners.get(name) == schedule.team:
            continue
        owned = [each for each, team in owners.items() if team == schedule.team]
        known = allowed("signal", owned) if owned else f"team {quote(schedule.team)} has none"
        message = (
            f"got {quote(name)}, {known}{suggestion(name, owned)}; declare it under spec.signalStore.signals "
            f"with team {quote(schedule.team)}"
        )
        yield Finding(("spec", "batch", "schedules", index, "manifest", "signal"), message)


def _signals(spec: Spec) -> Sequence[Signal]:
    """Return the signals; none without a store."""
    return spec.signal_store.signals if spec.signal_store else ()
