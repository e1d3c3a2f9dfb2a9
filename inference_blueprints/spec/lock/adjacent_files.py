"""What lies beside a blueprint: its lock, and charts that were fetched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from inference_blueprints.catalog.charts import Chart
from inference_blueprints.errors import BlueprintError, Problem
from inference_blueprints.spec.lock.lock import lock_path
from inference_blueprints.spec.lock.lock_reader import read_lock
from inference_blueprints.spec.lock.overlay import locked_releases, unserved
from inference_blueprints.spec.lock.pins import NO_PINS, Pins

#: Folder of fetched charts, beside the blueprint.
CHARTS_FOLDER = "charts"


class AdjacentFiles:
    """The place of a blueprint.

    Parameters
    ----------
    blueprint
        Its file.
    """

    def __init__(self, blueprint: Path) -> None:
        self._lock = lock_path(blueprint)
        self._charts = blueprint.parent / CHARTS_FOLDER
        self._upgrade = f"blueprints upgrade {blueprint}"
        self._fetch = f"blueprints charts fetch {blueprint}"
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def pins(self) -> Pins:
        """Return what the blueprint runs; what is wrong is added to problems and warnings."""
        pins = self._of_lock()
        releases = pins.releases
        charts = {name: self._with_archive(chart) for name, chart in releases.charts.items()}
        return replace(pins, releases=replace(releases, charts=charts), upgrade=self._upgrade)

    def _of_lock(self) -> Pins:
        """Return the pins of the lock; this library's where there is none, or one that cannot be used."""
        try:
            found = read_lock(self._lock)
        except BlueprintError as error:
            self.problems += error.problems
            return NO_PINS
        if found is None:
            return NO_PINS
        problems = list(unserved(found.lock, found.document, self._upgrade))
        self.problems += problems
        return NO_PINS if problems else Pins(locked_releases(found.lock), found.lock)

    def _with_archive(self, chart: Chart) -> Chart:
        """Return a chart with its archive, where there is one of its version and nothing is wrong with it."""
        if not chart.repository:
            return chart
        archive = self._charts / archive_name(chart)
        if not archive.is_file():
            self.warnings += self._others(chart)
            return chart
        digest = archive_digest(archive)
        if chart.digest and digest != chart.digest:
            message = f"its digest is {digest}, {chart.digest} is pinned; remove it and run `{self._fetch}`"
            self.problems.append(Problem(str(archive), 0, 0, "", message))
        elif not chart.digest:
            message = (
                f"no digest is known to check it with; `{self._fetch} --record` pins the one that it has"
            )
            self.warnings.append(Problem(str(archive), 0, 0, "", message, "warning"))
        return replace(chart, archive=archive)

    def _others(self, chart: Chart) -> Iterator[Problem]:
        """Yield a warning for an archive of another version, which is not deployed."""
        for archive in sorted(self._charts.glob(f"{chart.name}-[v0-9]*.tgz")):
            message = f"is not of the pinned version {chart.version}, so it is not used; `{self._fetch}`"
            yield Problem(str(archive), 0, 0, "", message, "warning")


def archive_name(chart: Chart) -> str:
    """Return the file name of a chart's archive.

    Parameters
    ----------
    chart
        The chart.
    """
    return f"{chart.name}-{chart.version}.tgz"


def archive_digest(archive: Path) -> str:
    """Return the digest of an archive as pins write it.

    Parameters
    ----------
    archive
        A file.
    """
    return f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"
