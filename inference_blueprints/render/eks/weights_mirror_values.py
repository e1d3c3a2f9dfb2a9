"""Values of the chart ``weights-mirror``: the job that copies a model to the platform's bucket once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from inference_blueprints.render.eks.environment_entries import (
    MirrorEntry,
    SecretReference,
    mirror_entries,
    secret_references,
)
from inference_blueprints.render.eks.rendered_values import rendered_values
from inference_blueprints.serving.types import Architecture, WeightsMirrorPlan
from inference_blueprints.serving.types.constraints import Image, NonEmpty
from inference_catalog.placement import POOL_LABEL, SYSTEM_ARCHITECTURE
from inference_runtime import runtime_directory

#: Files of ``runtime/weights`` that the Job runs, and with which workers wait for it.
_PROGRAM_FILES = ("__init__.py", "attempts.py", "bucket.py", "hub.py", "mirror.py", "settings.py", "wait.py")

FileName = Annotated[str, Field(pattern="^[a-z0-9_]+\\.py$")]


@dataclass(frozen=True, slots=True)
class WeightsMirrorValues:
    """Values of the chart; `program` holds the text of each file of the Job by its name."""

    image: Image
    environment: Annotated[tuple[MirrorEntry, ...], Field(min_length=1)]
    weights_bucket: NonEmpty
    secrets: tuple[SecretReference, ...]
    program: Annotated[Mapping[FileName, NonEmpty], Field(min_length=1)]
    architecture: Architecture
    pool_label: NonEmpty


def program_texts(names: Iterable[str]) -> dict[str, str]:
    """Return the text of files of ``runtime/weights``, by their names and in the order of these."""
    folder = runtime_directory() / "weights"
    return {name: (folder / name).read_text(encoding="utf-8") for name in sorted(set(names))}


def weights_mirror_values(mirror: WeightsMirrorPlan, *, weights_bucket: str) -> dict[str, Any]:
    """Return the values of a weights mirror's chart."""
    values = WeightsMirrorValues(
        image=mirror.image,
        environment=mirror_entries(mirror.environment),
        weights_bucket=weights_bucket,
        secrets=secret_references([mirror.environment]),
        program=program_texts(_PROGRAM_FILES),
        architecture=SYSTEM_ARCHITECTURE,
        pool_label=POOL_LABEL,
    )
    rendered: dict[str, Any] = rendered_values(values)
    return rendered
