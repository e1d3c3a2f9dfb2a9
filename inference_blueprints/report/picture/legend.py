"""The legend of the picture."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.report.picture.blocks import SMALL, Canvas
from inference_blueprints.report.picture.drawing import MUTED, Area, Arrow, Text
from inference_blueprints.report.picture.node_blocks import device

_COLUMNS = (0.0, 0.13, 0.32, 0.6, 0.83)
_DEVICE = 16.0
_COLOUR = "#0072b2"


@dataclass(frozen=True, slots=True)
class Legend:
    """One line with every sign that has no text.

    Parameters
    ----------
    decodes
        Whether there are decode workers.
    """

    decodes: bool = False

    def height(self, width: float) -> float:  # noqa: ARG002 - a block's signature
        """Return the height of one line with room above it."""
        return 34

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the signs with their meaning."""
        y = area.y + 22
        requests, control, held, free, decode = (area.x + share * area.width for share in _COLUMNS)
        canvas.shapes += [
            Arrow((requests, y), (requests + 36, y)),
            Arrow((control, y), (control + 36, y), dashed=True),
            *device(held, y - 8, _DEVICE, _COLOUR),
            *device(free, y - 8, _DEVICE, None),
            *(device(decode, y - 8, _DEVICE, _COLOUR, decodes=True) if self.decodes else ()),
        ]
        meanings = [
            (requests + 44, "requests"),
            (control + 44, "supply and control"),
            (held + 24, "accelerator, in its model's colour"),
            (free + 24, "free accelerator"),
        ]
        if self.decodes:
            meanings.append((decode + 24, "decode accelerator"))
        canvas.shapes += [Text(x, y + 4, meaning, SMALL, colour=MUTED) for x, meaning in meanings]
