"""Which releases of an engine register which model class."""

from __future__ import annotations

import re
from collections.abc import Mapping

from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class ClassReleases:
    """The releases that register one model class."""

    first: str
    """The first release read that has it. That of the oldest release read may be older."""
    until: str | None = None
    """The first release that no longer has it; None if the newest one read has it."""


@dataclass(frozen=True, slots=True)
class ClassHistory:
    """The model classes of an engine over its releases."""

    engine: str
    """The blueprint's key of the engine."""
    source: str
    """Modules that were read."""
    releases: Mapping[str, str]
    """Digest of the wheel by release, oldest first."""
    classes: Mapping[str, ClassReleases]
    """Releases by class."""

    @property
    def newest(self) -> str:
        """The newest release that was read."""
        return [*self.releases][-1]

    def has(self, name: str, release: str) -> bool:
        """Return whether a release registers a class, as far as the releases read tell.

        Parameters
        ----------
        name
            The class in ``architectures`` of a ``config.json``.
        release
            Release of the engine.
        """
        found = self.classes.get(name)
        if found is None or _order(release) < _order(found.first):
            return False
        return found.until is None or _order(release) < _order(found.until)


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]+", release))
