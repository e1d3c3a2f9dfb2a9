"""Downloads the charts of others, so that a deployment needs none of their repositories."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints import tools
from inference_blueprints.catalog.charts import Chart
from inference_blueprints.errors import UserError
from inference_blueprints.spec.lock.adjacent_files import archive_digest, archive_name

_TIMEOUT_SECONDS = 180
_OCI = "oci://"


@dataclass(frozen=True, slots=True)
class Archive:
    """A chart on this machine.

    Parameters
    ----------
    digest
        What the archive's content comes to.
    is_new
        Whether it was downloaded now.
    """

    chart: Chart
    path: Path
    digest: str
    is_new: bool


def fetch(charts: Mapping[str, Chart], folder: Path) -> list[Archive]:
    """Bring charts into a folder; those that are there and right stay.

    Parameters
    ----------
    charts
        Charts of repositories, by name.
    folder
        Where the archives go; it is made where it is missing.

    Returns
    -------
    list of Archive
        In the order of the charts.

    Raises
    ------
    UserError
        If a chart cannot be had, or is not the one that its digest pins; every one is named, and those that
        are right are there.
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
    """Return a chart's archive, downloaded unless it is there."""
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
    """Refuse an archive that is not the one that is pinned."""
    digest = archive_digest(archive)
    if chart.digest and digest != chart.digest:
        raise UserError(
            f"{chart.name} {chart.version}: its digest is {digest}, {chart.digest} is pinned; what "
            f"{chart.repository} holds was changed, or the archive: compare with the project's release first"
        )


def _pull(chart: Chart, directory: Path) -> Path:
    """Download one chart with helm, which knows the user's logins, proxies and authorities."""
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
    """Return how helm names a chart: an OCI address holds the name, a repository does not."""
    repository = chart.repository or ""
    return [repository] if repository.startswith(_OCI) else [chart.name, "--repo", repository]


def _reason(lines: Iterable[str]) -> str:
    """Return what helm said, without its progress."""
    errors = [line for line in lines if line.startswith("Error:")]
    return " ".join(" ".join(errors or lines).removeprefix("Error:").split()) or "helm brought no archive"


def _failure(chart: Chart, reason: str) -> str:
    return (
        f"{chart.name} {chart.version}: cannot be fetched from {chart.repository}: {reason}; "
        "fetch it where the repository is in reach, and copy the folder"
    )
