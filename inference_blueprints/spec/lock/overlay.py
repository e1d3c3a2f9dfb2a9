"""Combines a lock with this library's releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from inference_blueprints.spec.document import Document
from inference_blueprints.spec.lock.lock import Lock, Pin
from inference_blueprints.spec.wording import Path, allowed, listing, quote, suggestion
from inference_catalog.catalogue import shipped
from inference_catalog.charts import Chart
from inference_catalog.engine import Engine
from inference_catalog.releases import Releases, shipped_releases, version_order
from inference_contracts.errors import Problem


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
        releases = shipped().engine_releases.get(name, {})
        if releases and pin.version not in releases:
            message = f"got {quote(pin.version)}, this release supports {listing(releases)}"
            yield document.problem(("engines", name, "version"), f"{message}; {remedy}")


def _ranges(lock: Lock, own: Releases) -> Iterator[tuple[Path, str, str, str]]:
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
