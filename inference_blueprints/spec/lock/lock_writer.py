"""Writes a lock file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from inference_blueprints.spec.lock.lock import Lock, Pin
from inference_blueprints.spec.lock.lock_reader import KIND
from inference_blueprints.spec.types import API_VERSION
from inference_catalog.releases import NodeImage
from inference_contracts.errors import UserError

_ABOUT = """\
# Versions of third-party software that the blueprint of the same name runs. While this file is next to the
# blueprint, a new release of inference-blueprints does not change them; `blueprints upgrade` shows and makes
# changes. Written by `blueprints lock`, `deploy` and `upgrade`; keep it under version control. Versions that
# are not listed are not pinned: an add-on without a version is the one that EKS chose when it was created, a
# chart without a digest is not checked, and a model without a commit is the newest when a worker starts.
# The platform belongs to the blueprints that have this identity: move and copy this file with the blueprint.
"""


def lock_text(lock: Lock) -> str:
    """Return the text of a lock file.

    lock: Content of the lock.
    """
    return _ABOUT + "\n".join(_lines(lock)) + "\n"


def _lines(lock: Lock) -> Iterator[str]:
    """Yield the lines after the comment, always in the same order."""
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {KIND}"
    yield f"release: {_quoted(lock.release)}"
    if lock.identity:
        yield f"identity: {_quoted(lock.identity)}"
    if lock.kubernetes:
        yield f"kubernetes: {_quoted(lock.kubernetes)}"
    systems = {"bottlerocket": lock.bottlerocket, "al2023": lock.al2023}
    yield from _section("nodes", {name: _quoted(release) for name, release in systems.items() if release})
    yield from _section("addOns", {name: _quoted(version) for name, version in lock.add_ons.items()})
    yield from _section("charts", {name: _pin(pin) for name, pin in lock.charts.items()})
    yield from _section("engines", {name: _pin(pin) for name, pin in lock.engines.items()})
    yield from _section("heldPools", {name: _image(image) for name, image in lock.held_pools.items()})
    yield from _section("models", {_quoted(asked): _quoted(commit) for asked, commit in lock.models.items()})


def _section(name: str, entries: Mapping[str, str]) -> Iterator[str]:
    if entries:
        yield f"{name}:"
        yield from (f"  {key}: {value}" for key, value in entries.items())


def _pin(pin: Pin) -> str:
    digest = f", digest: {_quoted(pin.digest)}" if pin.digest else ""
    return f"{{version: {_quoted(pin.version)}{digest}}}"


def _image(image: NodeImage) -> str:
    systems = f"bottlerocket: {_quoted(image.bottlerocket)}, al2023: {_quoted(image.al2023)}"
    return f"{{kubernetes: {_quoted(image.kubernetes)}, {systems}}}"


def _quoted(text: str) -> str:
    """Quote a text; the formats of a lock allow only characters that need no escape."""
    return f'"{text}"'


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all.

    path: The file; an existing one is replaced.
    text: Content with its final line endings.
    Raises UserError if the file cannot be written.
    """
    target = path.resolve()  # a link stays one
    draft = target.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        if target.exists():
            draft.chmod(target.stat().st_mode)
        draft.replace(target)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; make its folder writable") from error
    finally:
        draft.unlink(missing_ok=True)
