"""Files as the value of a variable: a task definition has at most 64 KiB for everything."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping


def pack_files(files: Mapping[str, str]) -> str:
    """Return files as text of ASCII.

    files: Contents by path.
    """
    content = json.dumps(dict(sorted(files.items()))).encode()
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def unpack_files(text: str) -> dict[str, str]:
    """Return the files of what `pack_files` returned. Raises ValueError if it is something else."""
    try:
        found: dict[str, str] = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    except (ValueError, zlib.error) as error:
        raise ValueError(f"the files cannot be read: {error}") from error
    return found
