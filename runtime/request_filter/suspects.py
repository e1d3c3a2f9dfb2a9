"""Requests that may have ended workers: which, since when, and until when they are refused.

A request is suspected that was in progress at several unexplained deaths of workers and has not been answered
since. A whole answer clears it: what kills its worker gets none. So requests that only shared a worker with
such a request are cleared when they have moved to another one, and the few that did not move in time are
refused for the same time, and no longer.

After that time, suspected requests are tried one after the other. So the next death concerns only one of
them, and that one is refused again after it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from inference_contracts.request_filter import CHECKED_CODE, SUSPECT_CODE
from request_filter.refused_request import RefusedRequestError

#: Requests whose deaths are remembered, and failed requests that a death found late may still concern.
_MOST_REMEMBERED: Final = 10_000
#: Time for which deaths are remembered, in seconds.
_REMEMBERED_SECONDS: Final = 24 * 3600.0
#: Time after which a death that ended a request is known for sure, in seconds.
SETTLED_SECONDS: Final = 15.0
#: Time from a failure until its cause is known, in seconds.
CHECK_SECONDS: Final = 3.0
#: Time for which a suspected request that is tried again keeps the others waiting, in seconds. What ends a
#: worker mostly does so in its first steps, and many suspects with long answers must not wait for each other.
TRIAL_SECONDS: Final = 10.0
#: Time after which one that had to wait may ask again, in seconds.
_ASK_AGAIN_SECONDS: Final = 3


@dataclass(slots=True, eq=False)
class RequestRun:
    """A request in progress, or one that has failed."""

    digest: bytes
    """Digest of path and body."""
    started: float
    """When it was passed on."""
    ended: float | None = None
    """When it failed. None while it is in progress."""


@dataclass(slots=True)
class _Suspicion:
    deaths: int = 0
    refused_until: float = 0.0
    times: int = 0
    changed: float = 0.0


@dataclass(slots=True)
class SuspectMemory:
    """The memory of one filter."""

    deaths: int
    """Deaths at which a request is suspected. One that was suspected before needs one more."""
    refused_seconds: float
    most_refused_seconds: float
    """`refused_seconds`, `most_refused_seconds`: Time for which it is refused the first time, and at most."""
    _running: set[RequestRun] = field(default_factory=set)
    _failed: OrderedDict[RequestRun, None] = field(default_factory=OrderedDict)
    _known: OrderedDict[bytes, _Suspicion] = field(default_factory=OrderedDict)
    _checking: dict[bytes, float] = field(default_factory=dict)
    _trial: RequestRun | None = None

    def start(self, digest: bytes, now: float) -> RequestRun:
        """Note that a request is passed on.

        Raises RefusedRequestError if it is suspected, or was and another such request is being tried.
        """
        known = self._known.get(digest)
        if known and known.refused_until > now:
            raise RefusedRequestError(
                503,
                "this request was in progress when workers died unexpectedly; it is refused for the time "
                "that 'retry-after' states. Change it, or ask again after that",
                SUSPECT_CODE,
                retry_after=1 + int(known.refused_until - now),
            )
        if self._checking.get(digest, 0.0) > now:
            raise RefusedRequestError(
                503,
                "this request failed a moment ago, and its worker may have died; ask again",
                CHECKED_CODE,
                retry_after=1 + int(self._checking[digest] - now),
            )
        was_suspected = known is not None and known.times > 0
        if was_suspected and self._is_tried(now):
            raise RefusedRequestError(
                503,
                "another request is being tried that may have ended workers; ask again",
                CHECKED_CODE,
                retry_after=_ASK_AGAIN_SECONDS,
            )
        run = RequestRun(digest, now)
        self._running.add(run)
        if was_suspected:
            self._trial = run
        return run

    def _is_tried(self, now: float) -> bool:
        """Return whether a suspected request is being tried, or the cause of its failure is not known yet."""
        trial = self._trial
        if trial is None:
            return False
        if trial.ended is not None:
            return now < trial.ended + CHECK_SECONDS
        return trial in self._running and now < trial.started + TRIAL_SECONDS

    def answered(self, run: RequestRun) -> None:
        """Note that a request got its whole answer, which clears it."""
        self._running.discard(run)
        self._known.pop(run.digest, None)
        self._checking.pop(run.digest, None)

    def failed(self, run: RequestRun, now: float) -> None:
        """Note that a request ended without a whole answer."""
        self._running.discard(run)
        run.ended = now
        self._failed[run] = None
        while self._failed and (
            len(self._failed) > _MOST_REMEMBERED or _end(next(iter(self._failed))) < now - SETTLED_SECONDS
        ):
            self._failed.popitem(last=False)

    def check(self, run: RequestRun, now: float, seconds: float) -> None:
        """Refuse a request until it is known whether its worker died."""
        self._checking.pop(run.digest, None)
        self._checking[run.digest] = now + seconds
        # They are in the order of their ends.
        while self._checking[first := next(iter(self._checking))] <= now:
            del self._checking[first]

    def died(self, since: float, now: float) -> int:
        """Note that a worker died, and return how many requests that concerns.

        since: When it was last seen alive.
        now: When it was seen dead.
        """
        concerned = {run.digest for run in self._running}
        concerned |= {run.digest for run in self._failed if _end(run) >= since and run.started <= now}
        for digest in concerned:
            known = self._known.pop(digest, None)
            if known is None or known.changed < now - _REMEMBERED_SECONDS:
                known = _Suspicion()
            known.changed = now
            # The deaths of one attempt, at the worker it moved to as well, are one reason to refuse it.
            known.deaths += known.refused_until <= now
            if known.deaths >= (1 if known.times else self.deaths):
                seconds = min(self.refused_seconds * 2**known.times, self.most_refused_seconds)
                known.refused_until, known.times, known.deaths = now + seconds, known.times + 1, 0
            self._known[digest] = known
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return len(concerned)

    @property
    def refused(self) -> int:
        """Number of requests that have been suspected and not cleared."""
        return sum(each.times > 0 for each in self._known.values())

    def as_record(self, now: float, wall: float) -> dict[str, list[float]]:
        """Return what a filter that starts again must know.

        now, wall: The clock of this process, and the time of day.
        """
        return {
            digest.hex(): [
                each.deaths,
                each.refused_until - now + wall,
                each.times,
                each.changed - now + wall,
            ]
            for digest, each in self._known.items()
        }

    def restore(self, record: dict[str, list[float]], now: float, wall: float) -> None:
        """Take over what another process remembered: see `as_record`."""
        for digest, (deaths, until, times, changed) in record.items():
            self._known[bytes.fromhex(digest)] = _Suspicion(
                int(deaths), until - wall + now, int(times), changed - wall + now
            )


def _end(run: RequestRun) -> float:
    return run.started if run.ended is None else run.ended
