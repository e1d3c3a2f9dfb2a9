"""Files next to a blueprint: its lock, fetched charts, entries of models, and releases of engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from inference_blueprints.spec.engine_files import ENGINES_FOLDER, read_engines
from inference_blueprints.spec.lock.lock import Lock, find_unserved, lock_path, locked_releases
from inference_blueprints.spec.lock.lock_text import read_lock
from inference_blueprints.spec.model_files import MODELS_FOLDER, read_models
from inference_blueprints.spec.types import Cluster
from inference_blueprints.spec.wording import quote
from inference_catalog import Model
from inference_catalog.charts import Chart
from inference_catalog.releases import Releases, shipped_releases
from inference_contracts.errors import BlueprintError, Finding, Problem
from inference_contracts.records import dataclass

# What a blueprint is loaded with: releases of this library or of its lock, and models of its own.


@dataclass(frozen=True, slots=True)
class Pins:
    """Releases, commits and models."""

    releases: Releases = field(default_factory=shipped_releases)
    lock: Lock | None = None
    """Their source; None for this library's releases."""
    upgrade: str = "blueprints upgrade FILE"
    """Command that changes them."""
    models: Mapping[str, Model] = field(default_factory=dict)
    """Entries of models next to the blueprint, by name."""

    @property
    def commits(self) -> Mapping[str, str]:
        """Commit by repository and revision in the blueprint."""
        return self.lock.models if self.lock else {}


#: Pins of a blueprint without a lock.
NO_PINS = Pins()


def pinned_version(cluster: Cluster, pins: Pins) -> Iterator[Finding]:
    """Yield an error if the blueprint has another Kubernetes version than its lock.

    cluster: The blueprint's section.
    pins: The lock.
    """
    pinned = pins.lock.kubernetes if pins.lock else None
    if pinned and cluster.eks and cluster.eks.version != pinned:
        message = (
            f"got {quote(cluster.eks.version)}, the blueprint's lock has {quote(pinned)}; "
            f"run `{pins.upgrade}` to check and pin the change, or set the version back"
        )
        yield Finding(("spec", "cluster", "eks", "version"), message)


#: Folder of fetched charts, next to the blueprint.
CHARTS_FOLDER = "charts"


class AdjacentFiles:
    """The lock, the charts, the entries of models and the releases of engines next to a blueprint.

    blueprint: Its file.
    """

    def __init__(self, blueprint: Path) -> None:
        self._lock = lock_path(blueprint)
        self._charts = blueprint.parent / CHARTS_FOLDER
        self._models = blueprint.parent / MODELS_FOLDER
        self._engines = blueprint.parent / ENGINES_FOLDER
        self._upgrade = f"blueprints upgrade {blueprint}"
        self._fetch = f"blueprints charts fetch {blueprint}"
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def pins(self) -> Pins:
        """Return the versions that the blueprint runs; errors are added to problems and warnings."""
        pins = self._of_lock()
        releases = pins.releases
        charts = releases.charts
        if self._charts.is_dir():
            charts = {name: self._with_archive(chart) for name, chart in charts.items()}
        models, problems = read_models(self._models)
        self.problems += problems
        engines, wrong = read_engines(self._engines)
        self.problems += wrong
        releases = replace(releases, charts=charts, recorded_engines=engines)
        return replace(pins, releases=releases, upgrade=self._upgrade, models=models)

    def _of_lock(self) -> Pins:
        """Return the pins of the lock; this library's if there is no lock, or none that can be used."""
        try:
            found = read_lock(self._lock)
        except BlueprintError as error:
            self.problems += error.problems
            return NO_PINS
        if found is None:
            return NO_PINS
        problems = list(find_unserved(found.lock, found.document, self._upgrade))
        self.problems += problems
        return NO_PINS if problems else Pins(locked_releases(found.lock), found.lock)

    def _with_archive(self, chart: Chart) -> Chart:
        """Return a chart with its archive, if there is one of its version with the right digest."""
        if not chart.repository:
            return chart
        archive = self._charts / archive_name(chart)
        if not archive.is_file():
            self.warnings += self._others(chart)
            return chart
        digest = archive_digest(archive)
        if chart.digest and digest != chart.digest:
            message = (
                f"got digest {digest}, {chart.digest} is pinned; remove the file and run `{self._fetch}`"
            )
            self.problems.append(Problem(str(archive), 0, 0, "", message))
        elif not chart.digest:
            message = (
                f"no digest is pinned, so it is not checked; run `{self._fetch} --record` to pin its digest"
            )
            self.warnings.append(Problem(str(archive), 0, 0, "", message, "warning"))
        return replace(chart, archive=archive)

    def _others(self, chart: Chart) -> Iterator[Problem]:
        """Yield a warning for an archive of another version, which is not deployed."""
        for archive in sorted(self._charts.glob(f"{chart.name}-[v0-9]*.tgz")):
            message = f"is not the pinned version {chart.version}, so it is not used; run `{self._fetch}`"
            yield Problem(str(archive), 0, 0, "", message, "warning")


def archive_name(chart: Chart) -> str:
    """Return the file name of a chart's archive."""
    return f"{chart.name}-{chart.version}.tgz"


def archive_digest(archive: Path) -> str:
    """Return the digest of an archive in the format of pins.

    archive: A file.
    """
    import hashlib

    return f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"
