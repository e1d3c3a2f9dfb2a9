"""Where KV cache is kept beside the accelerators."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import Section


class NvmeKvCache(Section):
    """KV cache on the NVMe disks of the node, where it goes as it is computed and outlives that in memory."""

    gib: int | None = Field(default=None, ge=1, le=65_536)
    """NVMe of each such worker, in GiB; without it all of its share of the node's that nothing else needs."""


class KvCache(Section):
    """KV cache that outlives its place on the accelerators, a worker."""

    host_memory_gib: int = Field(ge=1, le=24_576)
    """Memory of the node in which each worker that computes prompts keeps KV cache, in GiB."""
    nvme: NvmeKvCache | None = None
    """The node's NVMe behind it; without it none."""
