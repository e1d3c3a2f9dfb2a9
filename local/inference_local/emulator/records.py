"""The folder of a cluster's recorded objects, one YAML file each, for people and for tests.

``<folder>/<cluster>/<namespace>/<kind>-<name>.yaml``; objects without a namespace are in ``_cluster``, Helm
releases in ``_releases``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml

CLUSTER_SCOPE = "_cluster"
_RELEASES = "_releases"


@dataclass(frozen=True)
class RecordedRelease:
    """A Helm release that was accepted."""

    name: str
    namespace: str
    """Where it is installed."""
    chart: str
    """Repository and chart, or ``asset`` for a chart of ours."""
    version: str
    """Version of a third-party chart. Empty for an asset."""
    rendered: bool
    """Whether helm rendered it and its objects were validated. Third-party charts are only recorded."""
    values: Mapping[str, Any]
    """Values that override the chart's defaults."""
    objects: tuple[str, ...] = ()
    """Files of its objects, relative to the cluster's folder."""


class EmulatorRecords:
    """The recorded objects and releases of one cluster.

    folder: The folder of the cluster. It is created with the first record.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path_of(self, kubernetes_object: Mapping[str, Any], namespace: str | None) -> str:
        """Return the path of an object, relative to the folder, whether it is recorded or not."""
        group, _, _ = kubernetes_object["apiVersion"].rpartition("/")
        kind = ".".join(part for part in (kubernetes_object["kind"].lower(), group) if part)
        return f"{namespace or CLUSTER_SCOPE}/{kind}-{kubernetes_object['metadata']['name']}.yaml"

    def has(self, path: str) -> bool:
        """Return whether an object is recorded."""
        return (self._folder / path).is_file()

    def read(self, path: str) -> dict[str, Any]:
        """Return a recorded object."""
        content: dict[str, Any] = yaml.safe_load((self._folder / path).read_text())
        return content

    def write(self, path: str, kubernetes_object: Mapping[str, Any]) -> None:
        """Record an object."""
        self._write(self._folder / path, kubernetes_object)

    def remove(self, path: str) -> None:
        """Remove an object."""
        (self._folder / path).unlink(missing_ok=True)

    def objects(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield path and content of every recorded object."""
        for file in sorted(self._folder.glob("*/*.yaml")):
            if file.parent.name != _RELEASES and (content := self._content(file)) is not None:
                yield str(file.relative_to(self._folder)), content

    def release(self, namespace: str, name: str) -> RecordedRelease | None:
        """Return a recorded release."""
        content = self._content(self._release_file(namespace, name))
        if content is None:
            return None
        return RecordedRelease(**{**content, "objects": tuple(content["objects"])})

    def releases(self) -> tuple[RecordedRelease, ...]:
        """Return every recorded release."""
        names = (file.stem.split(".", 1) for file in sorted((self._folder / _RELEASES).glob("*.yaml")))
        found = (self.release(namespace, name) for namespace, name in names)
        return tuple(release for release in found if release is not None)

    def write_release(self, release: RecordedRelease) -> None:
        """Record a release."""
        content = {**asdict(release), "objects": list(release.objects)}
        self._write(self._release_file(release.namespace, release.name), content)

    def remove_release(self, namespace: str, name: str) -> None:
        """Remove a release."""
        self._release_file(namespace, name).unlink(missing_ok=True)

    def _release_file(self, namespace: str, name: str) -> Path:
        return self._folder / _RELEASES / f"{namespace}.{name}.yaml"

    # Stacks are deployed beside each other: another one may remove or replace a file that this one reads.

    @staticmethod
    def _content(file: Path) -> dict[str, Any] | None:
        """Return what a file has; None if it is not there, or no longer."""
        try:
            text = file.read_text()
        except FileNotFoundError:
            return None
        content: dict[str, Any] = yaml.safe_load(text)
        return content

    @staticmethod
    def _write(file: Path, content: Mapping[str, Any]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=file.parent, prefix=f"{file.name}.", delete=False) as new:
            yaml.safe_dump(dict(content), new, sort_keys=False)
        Path(new.name).replace(file)


def recorded_releases(folder: Path) -> tuple[RecordedRelease, ...]:
    """Return the Helm releases of all recorded clusters.

    folder: The folder that the emulator records into.
    """
    return tuple(
        release for cluster in sorted(folder.glob("*")) for release in EmulatorRecords(cluster).releases()
    )
