"""What a worker's compiler makes, kept in S3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from inference_blueprints.serving.types.constraints import NonEmpty
from inference_blueprints.serving.types.values import EnvironmentValue


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledArtefacts:
    """What a worker's compiler makes, kept in S3."""

    folder: Annotated[str, Field(pattern="^/")]
    """Folder of the compiler in the worker."""
    key: NonEmpty
    """Prefix in the platform's weights bucket."""
    environment: Mapping[str, EnvironmentValue]
    """Variables of ``runtime/weights/neuron_artefacts.py``."""
