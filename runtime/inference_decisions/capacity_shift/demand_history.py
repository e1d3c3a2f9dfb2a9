"""The real-time demand of a deployment in bins of equal length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy
from numpy.typing import NDArray

Numbers = NDArray[numpy.float64]

#: Length of a bin. It is also the time between two decisions.
BIN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class DemandHistory:
    """Demand in bins of `BIN_SECONDS`, oldest first, without a gap in time."""

    end: int
    """End of the newest bin, in seconds since the epoch: a multiple of `BIN_SECONDS`."""
    values: Numbers
    """Mean demand of each bin, in the unit of `DeploymentView.capacity`. NaN is a gap: nothing was
    measured."""

    @classmethod
    def of_samples(cls, samples: Iterable[tuple[float, float]]) -> Self:
        """Return the history of samples. Their order does not matter.

        Samples of one bin are averaged. Bins without a sample become gaps. Samples that are not finite or
        are negative are dropped, because no demand is.

        samples: End of the measured time in seconds since the epoch, and demand.
        """
        pairs = numpy.array(list(samples), dtype=float).reshape(-1, 2)
        pairs = pairs[numpy.isfinite(pairs).all(axis=1) & (pairs[:, 1] >= 0)]
        if not len(pairs):
            return cls(0, numpy.empty(0))
        bins = numpy.ceil(pairs[:, 0] / BIN_SECONDS).astype(int)
        first, last = int(bins.min()), int(bins.max())
        sums, counts = numpy.zeros(last - first + 1), numpy.zeros(last - first + 1)
        numpy.add.at(sums, bins - first, pairs[:, 1])
        numpy.add.at(counts, bins - first, 1)
        values = numpy.full(last - first + 1, numpy.nan)
        numpy.divide(sums, counts, out=values, where=counts > 0)
        return cls(last * BIN_SECONDS, values)

    def until(self, now: float) -> DemandHistory:
        """Return the bins that have ended at a time. What is later comes from a clock that is wrong."""
        surplus = max(0, -(-(self.end - int(now)) // BIN_SECONDS))
        if not surplus:
            return self
        return DemandHistory(
            self.end - surplus * BIN_SECONDS, self.values[: max(0, len(self.values) - surplus)]
        )

    @property
    def measured_seconds(self) -> int:
        """Time with measurements."""
        return int(numpy.count_nonzero(~numpy.isnan(self.values))) * BIN_SECONDS

    @property
    def measured_at(self) -> float | None:
        """End of the newest bin with a measurement, in seconds since the epoch. None if there is none."""
        measured = numpy.flatnonzero(~numpy.isnan(self.values))
        if not len(measured):
            return None
        return float(self.end - (len(self.values) - 1 - int(measured[-1])) * BIN_SECONDS)
