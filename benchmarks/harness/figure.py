"""The type of a headline figure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Parameters
    ----------
    name
        What was measured; the file's name, or begins with it.
    value
        The figure, in `unit`.
    unit
        Such as ``s`` or ``MiB``.
    baseline
        What it is measured against, in the same unit and run; None when it stands alone.
    goal
        Largest ratio to the baseline that is good enough, or largest value when there is no baseline. None
        when there is no goal.
    simulated
        Whether it comes from simulated engines and not from the thing itself.
    """

    name: str
    value: float
    unit: str
    baseline: float | None = None
    goal: float | None = None
    simulated: bool = False

    @property
    def ratio(self) -> float | None:
        """The value as a multiple of the baseline."""
        return None if self.baseline is None else self.value / self.baseline

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.goal is None:
            return None
        return (self.value if self.ratio is None else self.ratio) <= self.goal

    def as_dict(self) -> dict[str, str | float | bool | None]:
        """Return the entry of ``results.json``."""
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "baseline": None if self.baseline is None else round(self.baseline, 4),
            "ratio": None if self.ratio is None else round(self.ratio, 4),
            "goal": self.goal,
            "met": self.met,
            "simulated": self.simulated,
        }
