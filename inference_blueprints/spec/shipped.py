"""The blueprints that are shipped with the library, and how a user selects one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from inference_blueprints import resources
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
