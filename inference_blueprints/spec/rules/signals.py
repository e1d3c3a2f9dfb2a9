"""Rules on the signal store: something fills it, and each signal is of a team that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.duplicate_names import duplicate_names
from inference_blueprints.spec.types import Batch, SignalStore, Team
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion

_SIGNALS: Path = ("spec", "signalStore", "signals")


def something_fills_the_store(signal_store: SignalStore, queue_count: int) -> Iterator[Finding]:
    """Check that a platform with a signal store has batch, whose jobs fill it."""
    if signal_store and not queue_count:
        yield Finding(
            ("spec", "signalStore"),
            "nothing would fill it: jobs write signals; add spec.batch, or take it away",
        )


def signals_differ(signal_store: SignalStore) -> Iterator[Finding]:
    """Check that signals have different names."""
    names: dict[Path, str] = {
        (*_SIGNALS, index, "name"): signal.name for index, signal in enumerate(signal_store.signals)
    }
    yield from duplicate_names("signal", names)


def signal_has_a_team(signal_store: SignalStore, teams: Mapping[int, Team]) -> Iterator[Finding]:
    """Check that a signal's team is one of the blueprint's."""
    known = list(dict.fromkeys(team.name for team in teams.values()))
    for index, signal in enumerate(signal_store.signals):
        if known and signal.team not in known:
            message = f"got {quote(signal.team)}, {allowed('team', known)}{suggestion(signal.team, known)}"
            yield Finding((*_SIGNALS, index, "team"), message)


def schedules_write_signals_of_their_team(
    batch: Batch, signal_owners: Mapping[str, str]
) -> Iterator[Finding]:
    """Check that a schedule's signal is one of its team's."""
    for index, schedule in enumerate(batch.schedules):
        name = schedule.manifest.signal
        if name is None or signal_owners.get(name) == schedule.team:
            continue
        owned = [each for each, team in signal_owners.items() if team == schedule.team]
        known = allowed("signal", owned) if owned else f"team {quote(schedule.team)} has none"
        message = (
            f"got {quote(name)}, {known}{suggestion(name, owned)}; declare it under spec.signalStore.signals "
            f"with team {quote(schedule.team)}"
        )
        yield Finding(("spec", "batch", "schedules", index, "manifest", "signal"), message)
