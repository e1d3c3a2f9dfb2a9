"""Where KV cache is kept beside the accelerators."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import Choice, Section


class NvmeKvCache(Section):
    """KV cache on the NVMe disks of the node, where it goes as it is computed and outlives that in memory."""

    gib: int | None = Field(default=None, ge=1, le=65_536)
    """NVMe of each such worker, in GiB; without it all of its share of the node's that nothing else needs."""


class S3KvCache(Section):
    """KV cache in a bucket that the platform makes for the model, and deletes with it."""

    expire_days: int = Field(default=3, ge=1, le=90)
    """Days after which S3 deletes what was put there."""


class SharedKvCache(Choice):
    """KV cache that all workers of the model find."""

    s3: S3KvCache | None = None
    """A bucket in S3."""


class KvCache(Section):
    """KV cache that outlives its place on the accelerators, a worker."""

    host_memory_gib: int = Field(ge=1, le=24_576)
    """Memory of the node in which each worker that computes prompts keeps KV cache, in GiB."""
    nvme: NvmeKvCache | None = None
    """The node's NVMe behind it; without it none."""
    shared: SharedKvCache | None = None
    """A store that all workers of the model share, behind the node's; without it none."""
