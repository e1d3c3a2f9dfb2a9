"""Who may call an entry point behind the front door."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from inference_blueprints.serving.types.process_parts import NonEmpty, Positive
from inference_contracts.door_identities import Caller
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedCallers:
    """What the sidecar of an entry point admits: callers with the certificate of one of these."""

    platform: NonEmpty
    """`metadata.name`, the first part of the callers' names."""
    release: NonEmpty
    """Deployment, whose certificate the sidecar shows."""
    callers: Annotated[tuple[Caller, ...], Field(min_length=1)]
    """Who may call it."""
    open_port: Positive
    """Port that needs no certificate: the one that the entry point has without a front door."""
    health_paths: Annotated[tuple[str, ...], Field(min_length=1)]
    """Paths of its health checks, which the open port answers."""
    silent_seconds: Positive
    """Longest time in which an answer may bring nothing."""
    old_names_until: Annotated[str, Field(pattern="^[-0-9]{10}T[:0-9]{8}Z$")] | None = None
    """Time in UTC from which on nobody passes without a certificate. Until then, the open port answers the
    API too. None if it never does."""
