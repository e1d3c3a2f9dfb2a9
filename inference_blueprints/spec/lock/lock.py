"""The content of a lock, and the lock for the versions that a blueprint runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inference_blueprints.spec.types import Blueprint, Weights
from inference_catalog.releases import NodeImage, Releases

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
