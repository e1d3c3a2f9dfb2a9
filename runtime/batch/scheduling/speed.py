"""How fast a model really answers, compared with its planned capacity.

The speed of a model is 1 if all of its jobs together progress as planned, and 0.5 if they take twice as long.
It is measured from the lines that running jobs have answered, and kept per model.
"""

from __future__ import annotations

import math
from typing import Final

from batch.jobs.record_table import Table
from inference_contracts.batch_names import EXPIRY_ATTRIBUTE, ID_ATTRIBUTE

#: Seconds after which a measured value has made up for half of the difference from the earlier one.
_HALF_LIFE_SECONDS: Final = 900.0
#: Lowest speed, so that a model that answers nothing for a day still gives finite times.
MIN_SPEED: Final = 0.001
#: A speed that nothing has confirmed for this long is forgotten.
_KEPT_SECONDS: Final = 7 * 24 * 3600


def followed_by(before: float, measured: float, seconds: float) -> float:
    """Return the mean of a value and a later measurement, in which the past counts ever less.

    seconds: Length of the measurement.
    """
    weight = 1.0 - math.pow(0.5, seconds / _HALF_LIFE_SECONDS)
    return before + weight * (measured - before)


class SpeedTable:
    """Speeds of models, in the table of all records."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of(self, model: str) -> float:
        """Return the speed of a model; 1 if it is unknown."""
        values = self._table.get(_identifier(model))
        return 1.0 if values is None else float(values["speed"])

    def put(self, model: str, speed: float, *, now: float) -> None:
        self._table.put(
            {
                ID_ATTRIBUTE: _identifier(model),
                "record": {"speed": speed},
                EXPIRY_ATTRIBUTE: int(now) + _KEPT_SECONDS,
            }
        )


def _identifier(model: str) -> str:
    return f"speed#{model}"
