"""Simple line glyphs of our own, in a 24 by 24 box, and the colour of each kind of service."""

from __future__ import annotations

from dataclasses import dataclass

COMPUTE = "#d45b07"
NETWORK = "#8c4fff"
STORAGE = "#4d7c0f"
SECURITY = "#c7254e"
MESSAGING = "#c2185b"
SERVING = "#01796f"
PEOPLE = "#44546a"


@dataclass(frozen=True, slots=True)
class Glyph:
    """A picture for one kind of thing.

    Parameters
    ----------
    colour
        Ground of the glyph.
    data
        SVG path data of its white lines.
    """

    colour: str
    data: str


APPLICATIONS = Glyph(PEOPLE, "M4 5h16v11H4zM9 20h6M12 16v4M8 9l-2 2 2 2M16 9l2 2-2 2")
INTERNET = Glyph(PEOPLE, "M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0M3 12h18M12 3c-5 5-5 13 0 18M12 3c5 5 5 13 0 18")
ENGINEER = Glyph(PEOPLE, "M12 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8M4 21c0-9 16-9 16 0")
LOAD_BALANCER = Glyph(NETWORK, "M3 12h6M9 12l8-7M9 12h8M9 12l8 7M17 3h4v4h-4zM17 10h4v4h-4zM17 17h4v4h-4z")
PRIVATE_ZONE = Glyph(NETWORK, "M12 3l8 3v6c0 5-4 8-8 9c-4-1-8-4-8-9V6zM9 9h6M9 12h6M9 15h6")
NAT_GATEWAY = Glyph(NETWORK, "M4 5h10v14H4zM9 12h12M17 8l4 4-4 4")
ENDPOINT = Glyph(NETWORK, "M3 12h10M13 6v12M13 9h4a3 3 0 0 1 0 6h-4M7 9l-3 3 3 3")
CONTROL_PLANE = Glyph(COMPUTE, "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 8l3.5 2v4L12 16l-3.5-2v-4z")
ROUTER = Glyph(SERVING, "M3 12h5M8 12l4-6h8M8 12l4 6h8M17 3l3 3-3 3M17 15l3 3-3 3")
CONTROLLER = Glyph(COMPUTE, "M20 12a8 8 0 1 1-3-6.2M20 3v4h-4M12 8v4l3 2")
BUCKET = Glyph(STORAGE, "M4 6c0-3 16-3 16 0c0 3-16 3-16 0M4 6l2 13c1 3 11 3 12 0l2-13")
KEY = Glyph(SECURITY, "M4 12a4 4 0 1 0 8 0a4 4 0 1 0-8 0M12 12h9M18 12v4M21 12v3")
QUEUE = Glyph(MESSAGING, "M3 8h5v8H3zM10 8h5v8h-5zM17 8h4v8h-4z")
STACKS = Glyph(MESSAGING, "M12 3l9 4.5-9 4.5-9-4.5zM3 12l9 4.5 9-4.5M3 16.5L12 21l9-4.5")
