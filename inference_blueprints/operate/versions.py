"""Locks the versions of a blueprint's software, and downloads third-party charts."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from inference_blueprints import tools
from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.spec.lock.adjacent_files import archive_digest, archive_name
from inference_blueprints.spec.lock.lock import Change, Lock, differences, lock_of, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text, read_lock, write_text
from inference_blueprints.spec.source import find, shipped
from inference_catalog.charts import Chart
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

# Downloads third-party charts, so that a deployment does not need their repositories.

_TIMEOUT_SECONDS = 180
_OCI = "oci://"


@dataclass(frozen=True, slots=True)
class Archive:
    """A chart on this machine."""

    chart: Chart
    path: Path
    digest: str
    is_new: bool
    """Whether this call downloaded it."""


def fetch(charts: Mapping[str, Chart], folder: Path) -> list[Archive]:
    """Download charts into a folder; archives with the right digest stay.

    charts: Charts from repositories, by name.
    folder: Folder for the archives; created if it is missing.
    Returns: In the order of the charts.
    Raises UserError if charts cannot be downloaded or have another digest than the pinned one. The message
        names each; the other charts are in the folder.
    """
    archives, failures = [], []
    for chart in charts.values():
        try:
            archives.append(_archive(chart, folder / archive_name(chart)))
        except UserError as error:
            failures.append(str(error))
        except OSError as error:
            failures.append(f"{folder}: cannot be written: {error.strerror}; choose another folder with --to")
            break
    if failures:
        raise UserError("\n".join(failures))
    return archives


def _archive(chart: Chart, path: Path) -> Archive:
    """Return a chart's archive; download it if it is missing."""
    if path.is_file():
        _demand_digest(chart, path)
        return Archive(chart, path, archive_digest(path), is_new=False)
    with tempfile.TemporaryDirectory() as directory:
        pulled = _pull(chart, Path(directory))
        _demand_digest(chart, pulled)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pulled, draft := path.with_name(f".{path.name}"))
        draft.replace(path)
    return Archive(chart, path, archive_digest(path), is_new=True)


def _demand_digest(chart: Chart, archive: Path) -> None:
    """Refuse an archive with another digest than the pinned one."""
    digest = archive_digest(archive)
    if chart.digest and digest != chart.digest:
        raise UserError(
            f"{chart.name} {chart.version}: got digest {digest}, {chart.digest} is pinned; the chart in "
            f"{chart.repository} or the archive was changed; compare it with the project's release first"
        )


def _pull(chart: Chart, directory: Path) -> Path:
    """Download one chart with helm, which uses the user's logins, proxies and authorities."""
    target, caches = directory / "charts", directory / "caches"
    target.mkdir()
    words = [
        *(str(tools.helm()), "pull", *_source(chart), "--version", chart.version),
        *("--destination", str(target), "--content-cache", str(caches), "--repository-cache", str(caches)),
    ]
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise UserError(_failure(chart, f"no answer within {_TIMEOUT_SECONDS} s")) from error
    found = list(target.glob("*.tgz"))
    if result.returncode or len(found) != 1:
        raise UserError(_failure(chart, _reason(result.stderr.splitlines())))
    return found[0]


def _source(chart: Chart) -> list[str]:
    """Return helm's arguments for a chart: an OCI address includes the name, a repository does not."""
    repository = chart.repository or ""
    return [repository] if repository.startswith(_OCI) else [chart.name, "--repo", repository]


def _reason(lines: Iterable[str]) -> str:
    """Return helm's error message, without its progress."""
    errors = [line for line in lines if line.startswith("Error:")]
    return " ".join(" ".join(errors or lines).removeprefix("Error:").split()) or "helm downloaded no archive"


def _failure(chart: Chart, reason: str) -> str:
    return (
        f"{chart.name} {chart.version}: cannot be fetched from {chart.repository}: {reason}; "
        "fetch it on a machine that can reach the repository, and copy the folder"
    )


#: 16 bytes, as in a UUID: two blueprints never get the same identity by chance.
_IDENTITY_BYTES = 16


def own_file(name_or_path: str) -> Path:
    """Return the file of a user's own blueprint, which can have a lock.

    name_or_path: Name or path from the user.
    Raises UserError if it is one of the shipped blueprints, which have no locks.
    """
    path = find(name_or_path)
    if is_shipped(path):
        name = path.stem
        raise UserError(
            f"{name}: is a shipped blueprint, which is not changed; copy it to your own file with "
            f"`blueprints init {name} my-platform.yaml --name my-platform`"
        )
    return path


def is_shipped(path: Path) -> bool:
    """Return whether a file is one of the shipped blueprints."""
    return path.resolve() in {each.resolve() for each in shipped().values()}


def running_lock(loaded: LoadedBlueprint) -> Lock:
    """Return a lock with all versions that a blueprint runs, and with the identity of its present lock."""
    commits = loaded.lock.models if loaded.lock else {}
    identity = loaded.lock.identity if loaded.lock else None
    return replace(lock_of(loaded.written, loaded.blueprint.releases, commits), identity=identity)


def complete_lock(loaded: LoadedBlueprint) -> Lock:
    """Return a lock with all versions that a blueprint runs, and with an identity: new if it has none."""
    lock = running_lock(loaded)
    return lock if lock.identity else replace(lock, identity=secrets.token_hex(_IDENTITY_BYTES))


def keep_lock(loaded: LoadedBlueprint, path: Path) -> list[Change]:
    """Write what is not yet in the lock: versions and an identity; what is there stays.

    A shipped blueprint has no lock, and nothing is written.

    Returns: New pins, and pins that are no longer used; if it is empty, nothing was written.
    Raises UserError if the lock cannot be written.
    """
    if is_shipped(path):
        return []
    lock = complete_lock(loaded)
    changes = differences(loaded.lock, lock)
    if changes:
        write_text(lock_path(path), lock_text(lock))
    return changes


def kept_lock(path: Path) -> Lock | None:
    """Return the lock next to a blueprint; None if there is none.

    path: The blueprint's file.
    Raises BlueprintError if it does not have the format of a lock.
    """
    found = read_lock(lock_path(path))
    return found.lock if found else None
