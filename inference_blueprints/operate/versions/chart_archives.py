"""Downloads third-party charts, so that a deployment does not need their repositories."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints import tools
from inference_blueprints.spec.lock.adjacent_files import archive_digest, archive_name
from inference_catalog.charts import Chart
from inference_contracts.errors import UserError

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
