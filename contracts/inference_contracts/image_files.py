"""First bytes of image files, by which the platform tells them from other content."""

from __future__ import annotations

from typing import Final

#: https://www.w3.org/TR/png-3/#5PNG-file-signature
PNG: Final = b"\x89PNG\r\n\x1a\n"
#: Start of image (https://www.w3.org/Graphics/JPEG/itu-t81.pdf, table B.1).
JPEG: Final = b"\xff\xd8\xff"
#: A RIFF container, with WEBP as its eight bytes from the ninth on names it
#: (https://developers.google.com/speed/webp/docs/riff_container).
WEBP: Final = b"RIFF"
