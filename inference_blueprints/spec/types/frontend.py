"""Frontends of a model's deployments."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import ContainerImage, Section


class Frontend(Section):
    """Frontends, which answer the API, read and write tokens, and route requests. Only on Dynamo."""

    replicas: int | None = Field(default=None, ge=1, le=100)
    """Number of frontends per deployment. Without it, it follows from `workload`; at least two."""
    # The largest system nodes have 16 vCPUs and 64 GiB.
    cpu: int | None = Field(default=None, ge=1, le=14)
    """vCPUs that each frontend requests. Without it, they follow from `workload`."""
    memory_gib: int | None = Field(default=None, ge=2, le=48)
    """Memory of each frontend in GiB. Without it, it follows from `workload`."""
    image: ContainerImage | None = None
    """Image of the frontends, of the same release as the engine's. Without it, the published one."""
    env: dict[str, str] = Field(default_factory=dict, max_length=100)
    """Environment variables of the frontends, such as `DYN_LOG: debug`. Variables that the plan sets are
    errors, and so are secrets."""
