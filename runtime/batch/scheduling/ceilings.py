"""Ceilings of the capacity shift: the places of a model that interactive requests leave to batch now.

The shift writes a ceiling per model each minute. A platform with the shift reads them. At a ceiling of 0,
and without one (`progress_items`), no further place is given. Running jobs keep one place each,
because a map cannot run zero children; their workers send less (`batch.worker.ceiling_watch`).
"""

from __future__ import annotations

from batch.contracts.progress_items import places_under
from batch.jobs.record_table import Table
from inference_contracts.shift_names import ceiling_identifier


class Ceilings:
    """Ceilings of models, in the table of all records.

    models: Models that have a ceiling. Others have all of their places.
    """

    def __init__(self, table: Table, models: frozenset[str]) -> None:
        self._table, self._models = table, models

    def of(self, model: str, places: int, *, now: float) -> int:
        """Return the places that the jobs of a model may have together now.

        model: Its name.
        places: Places without a ceiling.
        now: Seconds since 1970.
        """
        if model not in self._models:
            return places
        return min(places, places_under(self._table.get(ceiling_identifier(model)), now=now))
