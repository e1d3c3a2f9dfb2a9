"""The content of a lock, and the lock for the versions that a blueprint runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from inference_blueprints.spec.document import Document
from inference_blueprints.spec.types import Blueprint, Weights
from inference_blueprints.spec.wording import Path as KeyPath
from inference_blueprints.spec.wording import allowed, listing, quote, suggestion
from inference_catalog.catalogue import shipped
from inference_catalog.charts import Chart
from inference_catalog.engine import Engine
from inference_catalog.releases import NodeImage, Releases, shipped_releases, version_order
from inference_contracts.errors import Problem
from inference_contracts.records import dataclass

#: Revision that the Hub serves if a blueprint names none.
DEFAULT_REVISION = "main"
COMMIT = re.compile(r"[0-9a-f]{40}")
_SUFFIX = ".lock.yaml"


@dataclass(frozen=True, slots=True)
class Pin:
    """One version."""

    version: str
    """Version in the notation of its project."""
    digest: str | None = None
    """``sha256:…`` of the chart's archive or the image's manifest; None if it is not known."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The pins of one blueprint."""

    release: str
    """Version of this library that wrote it."""
    kubernetes: str | None = None
    """Version of the blueprint's cluster; None if it has no cluster."""
    bottlerocket: str | None = None
    al2023: str | None = None
    """`bottlerocket`, `al2023`: Releases of the nodes' operating systems. A lock of an earlier release has no
    ``al2023``."""
    add_ons: Mapping[str, str] = field(default_factory=dict)
    """Version by EKS add-on, if known."""
    charts: Mapping[str, Pin] = field(default_factory=dict)
    """Pin by chart."""
    engines: Mapping[str, Pin] = field(default_factory=dict)
    """Pin of the image by engine."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Commit by ``<repository>@<revision>`` in the blueprint."""
    held_pools: Mapping[str, NodeImage] = field(default_factory=dict)
    """Node image by pool, for pools that an upgrade has not reached."""
    identity: str | None = None
    """Random id of the blueprint. The platform that is deployed with it belongs to the files that have it. A
    lock of an earlier release has none."""


def lock_path(blueprint: Path) -> Path:
    """Return the path of a blueprint's lock, which is next to it: ``<blueprint>.lock.yaml``.

    blueprint: The blueprint's file.
    """
    return blueprint.with_name(blueprint.stem + _SUFFIX)


def model_key(weights: Weights) -> str | None:
    """Return the key of a model in the lock; None if it is not from the Hub or already names a commit.

    weights: The blueprint's section.
    """
    if weights.hugging_face is None or COMMIT.fullmatch(weights.revision or ""):
        return None
    return f"{weights.hugging_face}@{weights.revision or DEFAULT_REVISION}"


def lock_of(written: Blueprint, releases: Releases, commits: Mapping[str, str]) -> Lock:
    """Return the lock of a blueprint that runs certain releases.

    written: The blueprint as written, without commits of a lock.
    releases: The releases that it runs.
    commits: Known commits by key; keys that the blueprint does not have are left out.
    """
    # Imported here because it takes longer than the rest of the module, and only a new lock needs it.
    from importlib.metadata import version  # noqa: PLC0415

    spec = written.spec
    asked = {key for model in spec.models if (key := model_key(model.weights))}
    engines = sorted({model.engine.chosen for model in spec.models})
    return Lock(
        release=version("inference-blueprints"),
        kubernetes=spec.cluster.eks.version if spec.cluster.eks else None,
        bottlerocket=releases.bottlerocket,
        al2023=releases.al2023,
        add_ons={name: known for name, known in sorted(releases.add_ons.items()) if known},
        charts={name: Pin(chart.version, chart.digest) for name, chart in releases.registry_charts.items()},
        engines={name: Pin(releases.engine(name).version, releases.engine(name).digest) for name in engines},
        models={key: commits[key] for key in sorted(asked) if key in commits},
        held_pools={
            pool.name: releases.held_pools[pool.name]
            for pool in spec.pools
            if pool.name in releases.held_pools
        },
    )


def with_commits(written: Blueprint, commits: Mapping[str, str]) -> Blueprint:
    """Return a blueprint whose models have the commits of a lock.

    commits: Commit by key.
    """
    models = []
    for model in written.spec.models:
        commit = commits.get(model_key(model.weights) or "")
        weights = model.weights.model_copy(update={"revision": commit}) if commit else model.weights
        models.append(model.model_copy(update={"weights": weights}))
    return written.model_copy(update={"spec": written.spec.model_copy(update={"models": models})})


# Differences between two locks.

#: Prefix of the name of a held pool in a change.
HELD_POOL = "held pool "


@dataclass(frozen=True, slots=True)
class Change:
    """One pin that changes."""

    part: str
    """Name of the pinned component, such as ``chart karpenter``."""
    old: str | None
    new: str | None
    """`old`, `new`: Version, digest or commit; None if nothing is pinned."""


def differences(old: Lock | None, new: Lock) -> list[Change]:
    """Return every pin that differs, in the order of a deployment.

    old: The present lock; None if there is none.
    new: The future lock.
    """
    before, after = _pins(old) if old else {}, _pins(new)
    return [
        Change(part, before.get(part), after.get(part))
        for part in [*after, *(part for part in before if part not in after)]
        if before.get(part) != after.get(part)
    ]


def _pins(lock: Lock) -> dict[str, str]:
    """Return everything that a lock pins, by component."""
    single = {
        "identity": lock.identity,
        "Kubernetes": lock.kubernetes,
        "Bottlerocket": lock.bottlerocket,
        "AL2023": lock.al2023,
    }
    return {
        **{part: version for part, version in single.items() if version},
        **{f"add-on {name}": version for name, version in lock.add_ons.items()},
        **_versions("chart", lock.charts),
        **_versions("engine", lock.engines),
        **{f"model {asked}": commit for asked, commit in lock.models.items()},
        **{
            f"{HELD_POOL}{name}": f"{image.kubernetes}, {image.bottlerocket}, {image.al2023}"
            for name, image in lock.held_pools.items()
        },
    }


def _versions(noun: str, pins: Mapping[str, Pin]) -> dict[str, str]:
    """Return versions and known digests."""
    found = {}
    for name, pin in pins.items():
        found[f"{noun} {name}"] = pin.version
        if pin.digest:
            found[f"{noun} {name}, digest"] = pin.digest
    return found


# Combines a lock with this library's releases.


def locked_releases(lock: Lock) -> Releases:
    """Return the releases of a blueprint with a lock: those of the lock, else those of this library.

    lock: A lock in which `find_unserved` finds nothing.
    """
    own = shipped_releases()
    return Releases(
        bottlerocket=lock.bottlerocket or own.bottlerocket,
        al2023=lock.al2023 or own.al2023,
        charts={name: _chart(chart, lock.charts.get(name)) for name, chart in own.charts.items()},
        engines={name: _engine(engine, lock.engines.get(name)) for name, engine in own.engines.items()},
        add_ons={**own.add_ons, **lock.add_ons},
        held_pools=lock.held_pools,
    )


def _chart(chart: Chart, pin: Pin | None) -> Chart:
    """Return a chart at its pin; if the pin has no digest, the known digest of the same version applies."""
    if pin is None:
        return chart
    known = chart.digest if pin.version == chart.version else None
    return replace(chart, version=pin.version, digest=pin.digest or known)


def _engine(engine: Engine, pin: Pin | None) -> Engine:
    """Return the recorded release of an engine that a pin names."""
    if pin is None:
        return engine
    release = shipped().engine_releases[engine.name][pin.version]
    return replace(release, digest=pin.digest or release.digest)


def find_unserved(lock: Lock, document: Document, upgrade: str) -> Iterator[Problem]:
    """Yield the entries of a lock that this release of the library cannot run.

    document: Its file, for positions.
    upgrade: Command that pins the versions of this release.
    """
    remedy = f"run `{upgrade}` to pin other versions, or use release {lock.release}, which wrote the lock"
    own = shipped_releases()
    known: tuple[tuple[str, Mapping[str, object], Mapping[str, object], str], ...] = (
        ("charts", lock.charts, own.registry_charts, "chart"),
        ("engines", lock.engines, own.engines, "engine"),
        ("addOns", lock.add_ons, own.add_ons, "add-on"),
    )
    for section, pins, names, noun in known:
        for name in pins:
            if name not in names:
                message = f"is unknown, {allowed(noun, names)}{suggestion(name, names)}; {remedy}"
                yield document.problem((section, name), message, at_key=True)
    for path, version, oldest, newest in _ranges(lock, own):
        if not version_order(oldest) <= version_order(version) <= version_order(newest):
            served = quote(newest) if oldest == newest else f"{quote(oldest)} to {quote(newest)}"
            yield document.problem(path, f"got {quote(version)}, this release supports {served}; {remedy}")
    for name, pin in lock.engines.items():
        recorded = shipped().engine_releases.get(name, {})
        # Models that name no image run what the lock pins, and most of them run on Dynamo.
        releases = [
            each for each, engine in recorded.items() if engine.on_dynamo == own.engines[name].on_dynamo
        ]
        if releases and pin.version not in releases:
            message = f"got {quote(pin.version)}, this release supports {listing(releases)}"
            yield document.problem(("engines", name, "version"), f"{message}; {remedy}")


def _ranges(lock: Lock, own: Releases) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yield place, version, and the oldest and newest supported version."""
    for system in shipped().operating_systems.values():
        release = {"bottlerocket": lock.bottlerocket, "al2023": lock.al2023}[system.name]
        if release:
            yield ("nodes", system.name), release, system.oldest, system.version
        for name, image in lock.held_pools.items():
            place = ("heldPools", name, system.name)
            yield place, image.release_of(system.name), system.oldest, system.version
    for name, pin in lock.charts.items():
        chart = own.registry_charts.get(name)
        if chart:
            path = ("charts", name, "version")
            yield path, pin.version, chart.oldest or chart.version, chart.version
