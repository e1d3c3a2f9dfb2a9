"""KV cache outside the accelerators."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import Choice, Section


class NvmeKvCache(Section):
    """KV cache on the node's NVMe disks. It is written as it is computed and outlives the copy in memory."""

    gib: int | None = Field(default=None, ge=1, le=65_536)
    """NVMe space per worker, in GiB. Without it, all free space in the worker's share of the node's NVMe."""


class S3KvCache(Section):
    """KV cache in a bucket that the platform creates for the model and deletes with it."""

    expire_days: int = Field(default=3, ge=1, le=90)
    """Days after which S3 deletes an entry."""


class SharedKvCache(Choice):
    """KV cache that all workers of the model share."""

    s3: S3KvCache | None = None
    """An S3 bucket."""


class KvCache(Section):
    """KV cache that is kept after it leaves the accelerators. Sizes are per worker."""

    host_memory_gib: int = Field(ge=1, le=24_576)
    """Node memory for the KV cache of each worker that computes prompts, in GiB."""
    nvme: NvmeKvCache | None = None
    """KV cache on the node's NVMe, behind the memory. Without it, NVMe is not used."""
    shared: SharedKvCache | None = None
    """Store that all workers of the model share, behind the node's tiers. Without it, nothing is shared."""
