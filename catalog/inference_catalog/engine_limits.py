"""The limits of requests that each engine needs, with what happens beyond them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_contracts.request_limits import Bound, RequestLimits, StructureLimits


@dataclass(frozen=True, slots=True)
class EngineBound(Bound):
    """The most that a field of a request may have, and why."""

    engines: tuple[str, ...]
    """Engines that need it, by the blueprint's key. All if it is empty."""
    beyond: str
    """What an engine does beyond it."""
    source: str
    """Where the engine's source, or an API, says so."""

    def needed_by(self, engine: str) -> bool:
        """Return whether the requests of an engine have this bound."""
        return not self.engines or engine in self.engines


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of requests of all engines."""

    source: str
    date: str
    """`source`, `date`: Where the limits were read, and when."""
    read: Mapping[str, str]
    """Release of each engine whose sources were read, by the blueprint's key."""
    bounds: tuple[EngineBound, ...]
    """Bounds of fields."""
    structure: StructureLimits
    """Limits of schemas, patterns and grammars, which are the same for every engine."""
    structure_source: str
    """Where these were measured."""

    def of(self, engine: str) -> RequestLimits:
        """Return the limits of an engine's requests.

        Parameters
        ----------
        engine
            The blueprint's key of the engine, such as ``vllm``.
        """
        bounds = (Bound(each.field, each.counts, each.most) for each in self.bounds if each.needed_by(engine))
        return RequestLimits(tuple(bounds), self.structure)
