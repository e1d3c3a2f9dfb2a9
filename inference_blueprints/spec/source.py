"""Reads the text of a blueprint: a user's file, or one that is shipped with the library."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from inference_blueprints import resources
from inference_blueprints.spec.document import BLUEPRINT, FileKind
from inference_blueprints.spec.wording import allowed, suggestion
from inference_contracts.errors import BlueprintError, Problem

_EDITOR_COMMENT = "yaml-language-server:"
_SUFFIXES = (".yaml", ".yml")


def shipped() -> Mapping[str, Path]:
    """Return the path of every shipped blueprint by its name, in alphabetical order."""
    return {path.stem: _as_seen(path) for path in sorted(resources.blueprints_directory().glob("*.yaml"))}


def find(name_or_path: str) -> Path:
    """Return the file for a shipped name or a path.

    name_or_path: A shipped name such as ``quickstart-g6e``; or a path, which has a separator or a YAML
        suffix, or exists. A path is not opened here.
    Raises BlueprintError if it is neither; the message lists the shipped names.
    """
    blueprints = shipped()
    if name_or_path in blueprints:
        return blueprints[name_or_path]
    path = Path(name_or_path)
    if "/" in name_or_path or name_or_path.endswith(_SUFFIXES) or (name_or_path and path.exists()):
        return path
    message = (
        f"neither a shipped blueprint nor a file; {allowed('shipped blueprint', blueprints)}"
        f"{suggestion(name_or_path, blueprints)}"
    )
    raise BlueprintError([Problem(name_or_path, 0, 0, "", message)])


def _as_seen(path: Path) -> Path:
    """Return the path relative to the working directory if it is below it, as messages show it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def describe(path: Path) -> str:
    """Return a blueprint's description: its first comment that is not for the editor, up to a full stop."""
    said: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.removeprefix("#").strip()
        if not line.startswith("#") or (said and said[-1].endswith(".")):
            break
        if not words.startswith(_EDITOR_COMMENT):
            said.append(words)
    return " ".join(said)


MAXIMUM_BYTES = 1024 * 1024
# What YAML 1.2.2, chapter 5.1, does not count as printable, and the line breaks of Unicode.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


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
