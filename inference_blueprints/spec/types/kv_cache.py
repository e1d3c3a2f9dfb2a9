"""Where KV cache is kept beside the accelerators."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import Section


class KvCache(Section):
    """KV cache that outlives its place on the accelerators, a worker."""

    host_memory_gib: int = Field(ge=1, le=24_576)
    """Memory of the node in which each worker that computes prompts keeps KV cache, in GiB."""
