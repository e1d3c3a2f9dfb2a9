"""Reads the text of a blueprint file, and reports files that cannot be used."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from inference_blueprints.spec.document import BLUEPRINT, FileKind
from inference_contracts.errors import BlueprintError, Problem

MAXIMUM_BYTES = 1024 * 1024
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def read(path: Path, file: str, kind: FileKind = BLUEPRINT) -> str:
    """Return the text of a blueprint file.

    file: Its name in messages.
    kind: Expected kind of the file.
    Raises BlueprintError if it is missing, not a regular file, unreadable, over 1 MiB, not UTF-8, or holds
        characters that editors do not show. The latter two carry their position.
    """
    return _decoded(_read_bytes(path, file, kind), file)


def read_standard_input(file: str) -> str:
    """Return the text of a blueprint on standard input.

    Raises BlueprintError if it is over 1 MiB, not UTF-8, or holds characters that editors do not show.
    """
    return _decoded(_limited(sys.stdin.buffer.read(MAXIMUM_BYTES + 1), file, BLUEPRINT), file)


def _decoded(content: bytes, file: str) -> str:
    """Return the text of a file's bytes."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig")
        message = f"got byte 0x{content[error.start]:02x}, which is not UTF-8; save the file as UTF-8"
        raise _failure(file, message, before) from error
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        message = f"got the invisible character U+{ord(unprintable[0]):04X}; remove it"
        raise _failure(file, message, text[: unprintable.start()])
    return text


def _read_bytes(path: Path, file: str, kind: FileKind) -> bytes:
    """Read the file, at most one byte more than is allowed."""
    try:
        if path.exists() and not path.is_file():
            got = "a directory" if path.is_dir() else "not a regular file"
            raise _failure(file, f"is {got}; name the YAML file of a {kind.noun}")
        with path.open("rb") as stream:
            content = stream.read(MAXIMUM_BYTES + 1)
    except FileNotFoundError as error:
        raise _failure(file, f"does not exist; {kind.when_missing}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _failure(file, f"cannot be read: {reason}") from error
    return _limited(content, file, kind)


def _limited(content: bytes, file: str, kind: FileKind) -> bytes:
    """Return the bytes unless there are too many."""
    if len(content) > MAXIMUM_BYTES:
        raise _failure(file, f"is larger than 1 MiB, which is the maximum; a {kind.noun} has a few kilobytes")
    return content


def _failure(file: str, message: str, before: str | None = None) -> BlueprintError:
    """Make the error of a whole file, or of the place after the text before it."""
    if before is None:
        return BlueprintError([Problem(file, 0, 0, "", message)])
    lines = re.split("\r\n|\r|\n", before)
    return BlueprintError([Problem(file, len(lines), len(lines[-1]) + 1, "", message)])
