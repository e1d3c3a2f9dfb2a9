"""What the signs of the picture mean."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.planning.drawing import MUTED, Area, Arrow, Rectangle, Text
from inference_blueprints.planning.layout import SMALL, Canvas

_COLUMNS = (0.0, 0.2, 0.42, 0.72)


@dataclass(frozen=True, slots=True)
class Legend:
    """One line with every sign that has no words of its own."""

    def height(self, width: float) -> float:  # noqa: ARG002 - a block's signature
        """Return the height of one line with room above it."""
        return 34

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the signs with their meaning."""
        y = area.y + 22
        requests, control, held, free = (area.x + share * area.width for share in _COLUMNS)
        canvas.shapes += [
            Arrow((requests, y), (requests + 36, y)),
            Arrow((control, y), (control + 36, y), dashed=True),
            Rectangle(Area(held, y - 8, 16, 16), fill="#0072b2", radius=2),
            Rectangle(Area(free, y - 8, 16, 16), fill="#ffffff", stroke="#8d969e", radius=2, stroke_width=1),
        ]
        meanings = (
            (requests + 44, "requests"),
            (control + 44, "supply and control"),
            (held + 24, "accelerator, in its model's colour"),
            (free + 24, "accelerator that no worker holds"),
        )
        canvas.shapes += [Text(x, y + 4, meaning, SMALL, colour=MUTED) for x, meaning in meanings]
