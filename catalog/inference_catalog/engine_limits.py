"""The limits of requests that each engine needs, with what happens beyond them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_contracts.request_limits import Bound, RequestLimits, StructureLimits


@dataclass(frozen=True, slots=True)
class EngineBound(Bound):
    """The most that a field of a request may have, and why.

    Parameters
    ----------
    engines
        Engines that need it, by the blueprint's key. All if it is empty.
    beyond
        What an engine does beyond it.
    source
        Where the engine's source, or an API, says so.
    """

    engines: tuple[str, ...]
    beyond: str
    source: str

    def needed_by(self, engine: str) -> bool:
        """Return whether the requests of an engine have this bound."""
        return not self.engines or engine in self.engines


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of requests of all engines.

    Parameters
    ----------
    source, date
        Where the limits were read, and when.
    read
        Release of each engine whose sources were read, by the blueprint's key.
    bounds
        Bounds of fields.
    structure
        Limits of schemas, patterns and grammars, which are the same for every engine.
    structure_source
        Where these were measured.
    """

    source: str
    date: str
    read: Mapping[str, str]
    bounds: tuple[EngineBound, ...]
    structure: StructureLimits
    structure_source: str

    def of(self, engine: str) -> RequestLimits:
        """Return the limits of an engine's requests.

        Parameters
        ----------
        engine
            The blueprint's key of the engine, such as ``vllm``.
        """
        bounds = (Bound(each.field, each.counts, each.most) for each in self.bounds if each.needed_by(engine))
        return RequestLimits(tuple(bounds), self.structure)
