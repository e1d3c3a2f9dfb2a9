"""Reads and writes a lock file. All format errors are reported at once, with line and column."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from inference_blueprints.spec import composer, formats, source
from inference_blueprints.spec.document import INVALID, Document, FileKind
from inference_blueprints.spec.lock.lock import COMMIT, Lock, Pin
from inference_blueprints.spec.types import API_VERSION
from inference_blueprints.spec.wording import Path as DocumentPath
from inference_blueprints.spec.wording import allowed, quote, suggestion
from inference_catalog.operating_system import SystemName
from inference_catalog.releases import NodeImage, shipped_releases
from inference_contracts.errors import BlueprintError, Problem, UserError
from inference_contracts.records import dataclass

KIND = "Lock"
LOCK_FILE = FileKind(
    noun="lock",
    first_key="apiVersion",
    when_missing="write it with `blueprints lock FILE`",
    when_empty="remove it, and write it again with `blueprints lock FILE`",
)
_VERSION = re.compile(r"v?[0-9][A-Za-z0-9.+_-]{0,60}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_VERSION_FORM = "a version such as v1.66.0"
_DIGEST_FORM = "a digest, sha256: and 64 hexadecimal digits"
_COMMIT_FORM = "a commit, 40 hexadecimal digits"
_IDENTITY = re.compile(r"[0-9a-f]{32}")
_IDENTITY_FORM = "32 hexadecimal digits"
_KUBERNETES = re.compile(formats.KUBERNETES_VERSION)
_KUBERNETES_FORM = formats.DESCRIPTIONS[formats.KUBERNETES_VERSION]
_PIN_KEYS = ("version", "digest")
_SYSTEM_KEYS = get_args(SystemName)
_IMAGE_KEYS = ("kubernetes", *_SYSTEM_KEYS)
_KEYS = (
    *("apiVersion", "kind", "release", "identity", "kubernetes", "nodes"),
    *("addOns", "charts", "engines", "heldPools", "models"),
)


@dataclass(frozen=True, slots=True)
class LockFile:
    """A lock and the positions of its values."""

    lock: Lock
    """The content."""
    document: Document
    """The file, for the positions of later errors."""


def read_lock(path: Path) -> LockFile | None:
    """Read a lock file.

    path: The file, which may be missing.
    Returns: None if the file is missing.
    Raises BlueprintError if the file does not have the format of a lock, with all errors.
    """
    if not path.exists():
        return None
    return parse_lock(source.read(path, str(path), LOCK_FILE), str(path))


def parse_lock(text: str, file: str) -> LockFile:
    """Read the text of a lock.

    text: YAML.
    file: Its name in messages.
    Raises BlueprintError if the text does not have the format of a lock, with all errors.
    """
    document = composer.parse(text, file, LOCK_FILE)
    reader = _Reader(document)
    lock = reader.lock()
    problems = [*document.problems, *reader.problems]
    if problems:
        raise BlueprintError(problems)
    return LockFile(lock, document)


class _Reader:
    """Reads the values of a document and records their errors."""

    def __init__(self, document: Document) -> None:
        self.problems: list[Problem] = []
        self._document = document

    def lock(self) -> Lock:
        """Return the lock; it is valid only if there are no problems."""
        self._no_others((), _KEYS)
        for key, only in (("apiVersion", API_VERSION), ("kind", KIND)):
            got = self._document.value((key,))
            if got is not INVALID and got != only:
                message = (
                    f"got {quote(got)}, this release supports {quote(only)}; use the release that wrote it"
                )
                self._report((key,), message)
        self._no_others(("nodes",), _SYSTEM_KEYS)
        al2023 = self._text(("nodes", "al2023"), _VERSION, _VERSION_FORM)
        return Lock(
            release=self._text(("release",), _VERSION, _VERSION_FORM, needed=True) or "",
            kubernetes=self._text(("kubernetes",), _KUBERNETES, _KUBERNETES_FORM),
            bottlerocket=self._text(("nodes", "bottlerocket"), _VERSION, _VERSION_FORM),
            al2023=al2023,
            add_ons=self._texts("addOns", _VERSION, _VERSION_FORM),
            charts=dict(self._pins("charts")),
            engines=dict(self._pins("engines")),
            models=self._texts("models", COMMIT, _COMMIT_FORM),
            held_pools=dict(self._images("heldPools", al2023 or shipped_releases().al2023)),
            identity=self._text(("identity",), _IDENTITY, _IDENTITY_FORM),
        )

    def _texts(self, section: str, form: re.Pattern[str], form_text: str) -> dict[str, str]:
        """Return a mapping of names to texts of one form."""
        found = {name: self._text((section, name), form, form_text) for name in self._names((section,))}
        return {name: text for name, text in found.items() if text is not None}

    def _pins(self, section: str) -> Iterator[tuple[str, Pin]]:
        """Yield the pins of a mapping."""
        for name in self._names((section,)):
            self._no_others((section, name), _PIN_KEYS)
            version = self._text((section, name, "version"), _VERSION, _VERSION_FORM, needed=True)
            digest = self._text((section, name, "digest"), _DIGEST, _DIGEST_FORM)
            if version is not None:
                yield name, Pin(version, digest)

    def _images(self, section: str, al2023: str) -> Iterator[tuple[str, NodeImage]]:
        """Yield the node image by pool. In a lock of an earlier release, it has the lock's AL2023."""
        for name in self._names((section,)):
            self._no_others((section, name), _IMAGE_KEYS)
            kubernetes = self._text((section, name, "kubernetes"), _KUBERNETES, _KUBERNETES_FORM, needed=True)
            release = self._text((section, name, "bottlerocket"), _VERSION, _VERSION_FORM, needed=True)
            own = self._text((section, name, "al2023"), _VERSION, _VERSION_FORM)
            if kubernetes is not None and release is not None:
                yield name, NodeImage(kubernetes, release, own or al2023)

    def _text(
        self, path: DocumentPath, form: re.Pattern[str], form_text: str, *, needed: bool = False
    ) -> str | None:
        """Return the text at a path; None if there is none, or if it does not have the format."""
        value = self._document.value(path)
        if value is None:
            if needed and self._document.value(path[:-1]) is not INVALID:
                self._report(path, f"is missing: {form_text}")
            return None
        if isinstance(value, str) and form.fullmatch(value):
            return value
        if value is not INVALID:
            self._report(path, f"got {quote(value)}, expected {form_text}")
        return None

    def _no_others(self, path: DocumentPath, known: tuple[str, ...]) -> None:
        """Report every key that is not known."""
        for name in self._names(path):
            if name not in known:
                message = f"is an unknown key, {allowed('key', known)}{suggestion(name, known)}"
                self._report((*path, name), message, at_key=True)

    def _names(self, path: DocumentPath) -> list[str]:
        """Return the keys of a mapping; an empty list if there is no mapping."""
        value = self._document.value(path, default={})
        if isinstance(value, dict):
            return [str(name) for name in self._document.node(path).children] if value else []
        if value is not INVALID and not any(problem.path == path[0] for problem in self.problems):
            self._report(path, f"got {quote(value)}, expected a mapping")
        return []

    def _report(self, path: DocumentPath, message: str, *, at_key: bool = False) -> None:
        self.problems.append(self._document.problem(path, message, at_key=at_key))


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
