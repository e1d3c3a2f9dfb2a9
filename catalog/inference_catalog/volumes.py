"""Throughput of a node's EBS volume for images and weights."""

from __future__ import annotations

from collections.abc import Sequence

from inference_catalog.hardware import InstanceType

#: A gp3 volume has 125 MiB/s at no extra cost. At most 1,000 MiB/s are requested
#: (https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html).
_MIN_GP3_MIB_PER_SECOND, _MAX_GP3_MIB_PER_SECOND = 125, 1000


#: A gp3 volume has 3,000 IOPS at no extra cost (the same page).
FREE_GP3_OPERATIONS = 3000
FREE_GP3_MIB_PER_SECOND = _MIN_GP3_MIB_PER_SECOND
#: Each MiB/s needs 4 IOPS (the same page).
OPERATIONS_PER_MIB_PER_SECOND = 4


def gp3_mib_per_second(types: Sequence[InstanceType]) -> int:
    """Return the highest useful throughput of a volume, in MiB/s, that every type supports.

    Parameters
    ----------
    types
        The pool's types. The slowest decides.
    """
    slowest = min(instance_type.ebs_bandwidth_mbps for instance_type in types)
    usable = slowest * 10**6 // 8 // 2**20
    return max(_MIN_GP3_MIB_PER_SECOND, min(_MAX_GP3_MIB_PER_SECOND, usable))


def image_volume_mib_per_second(types: Sequence[InstanceType], *, from_snapshot: bool) -> int | None:
    """Return the throughput of the volume that holds images and weights; None if they are on NVMe.

    Parameters
    ----------
    types
        The pool's types.
    from_snapshot
        Whether the volume starts with images, so that the NVMe stays unused.
    """
    if all(each.local_nvme_gb for each in types) and not from_snapshot:
        return None
    return gp3_mib_per_second(types)
