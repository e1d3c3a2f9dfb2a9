"""The blueprints that come with the library, and how a user names one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from inference_blueprints import resources
from inference_blueprints.errors import UserError
from inference_blueprints.spec.wording import allowed, quote, suggestion

_EDITOR_COMMENT = "yaml-language-server:"
_SUFFIXES = (".yaml", ".yml")


def shipped() -> Mapping[str, Path]:
    """Return the path of every shipped blueprint by its name, in alphabetical order."""
    return {path.stem: path for path in sorted(resources.blueprints_directory().glob("*.yaml"))}


def find(name_or_path: str) -> Path:
    """Return the file that a user means by a shipped name or a path.

    Parameters
    ----------
    name_or_path
        A shipped name such as ``quickstart-g6e``; or a path, which has a separator or a YAML suffix. A path
        is not opened here.

    Raises
    ------
    UserError
        If it is neither; the message lists the shipped names.
    """
    blueprints = shipped()
    if name_or_path in blueprints:
        return blueprints[name_or_path]
    if "/" in name_or_path or name_or_path.endswith(_SUFFIXES):
        return Path(name_or_path)
    raise unknown_name(name_or_path)


def unknown_name(name: str) -> UserError:
    """Return the error for a name that no shipped blueprint has: it lists them and guesses."""
    names = shipped()
    return UserError(
        f"got blueprint {quote(name)}, {allowed('shipped blueprint', names)}{suggestion(name, names)}; "
        "a file of your own is named with its .yaml or a /"
    )


def describe(path: Path) -> str:
    """Return what a blueprint says of itself: the first comment that is not for the editor."""
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.removeprefix("#").strip()
        if not line.startswith("#"):
            break
        if not words.startswith(_EDITOR_COMMENT):
            return words
    return ""
