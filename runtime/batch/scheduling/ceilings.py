"""Ceilings of the capacity shift: the places of a model that interactive requests leave to batch now.

In return, the shift reads how many places the deadlines of a model's jobs need.

The shift writes a ceiling per model each minute. A platform with the shift reads them. At a ceiling of 0,
and without one (`progress_items`), no further place is given. Running jobs keep one place each,
because a map cannot run zero children; their workers send less (`batch.worker.ceiling_watch`).
"""

from __future__ import annotations

from batch.contracts.progress_items import places_under
from batch.jobs.record_table import Table
from inference_contracts.batch_names import EXPIRY_ATTRIBUTE, ID_ATTRIBUTE
from inference_contracts.shift_names import (
    CEILING_AT,
    CEILING_PLACES,
    CEILING_SECONDS,
    ceiling_identifier,
    deadlines_identifier,
)


class Ceilings:
    """Ceilings of models, in the table of all records.

    models: Models that have a ceiling. Others have all of their places.
    """

    def __init__(self, table: Table, models: frozenset[str]) -> None:
        self._table, self.models = table, models

    def of(self, model: str, places: int, *, now: float) -> int:
        """Return the places that the jobs of a model may have together now.

        model: Its name.
        places: Places without a ceiling.
        now: Seconds since 1970.
        """
        if model not in self.models:
            return places
        return min(places, places_under(self._table.get(ceiling_identifier(model)), now=now))

    def tell_needed(self, model: str, places: int, *, now: float) -> None:
        """Write how many places the deadlines of a model's jobs need.

        model: Its name.
        places: The places. Zero if it has no jobs.
        now: Seconds since 1970.
        """
        self._table.put(
            {
                ID_ATTRIBUTE: deadlines_identifier(model),
                "record": {CEILING_PLACES: places, CEILING_AT: int(now)},
                EXPIRY_ATTRIBUTE: int(now) + CEILING_SECONDS,
            }
        )
