"""Where the programs are that run in the cloud: Lambda functions, batch workers, programs of images, Java."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def runtime_directory() -> Path:
    """Return the folder of the programs: `batch`, `streaming`, `canary`, `java` and the others.

    Returns: Absolute path. In a checkout it is `runtime`; an installed wheel carries the programs in
        `programs`.
    """
    programs = _PACKAGE / "programs"
    return programs if programs.is_dir() else _PACKAGE.parent
