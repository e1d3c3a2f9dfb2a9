"""The type of a measured figure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure."""

    name: str
    """Name of the figure. It is the file's name or begins with it."""
    value: float
    """The figure, in `unit`."""
    unit: str
    """Such as ``s`` or ``MiB``."""
    baseline: float | None = None
    """Value for comparison, in the same unit and run. None if there is none."""
    goal: float | None = None
    """Maximum ratio to the baseline, or maximum value without a baseline. None if there is no goal."""
    simulated: bool = False
    """Whether the figure comes from simulated engines."""

    @property
    def ratio(self) -> float | None:
        """The value as a multiple of the baseline."""
        return None if self.baseline is None else self.value / self.baseline

    @property
    def met(self) -> bool | None:
        """Whether the goal is met. None without a goal."""
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
