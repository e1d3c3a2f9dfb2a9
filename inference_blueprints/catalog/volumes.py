"""How fast a node's EBS volume is made where images and weights lie on it."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.catalog.hardware import InstanceType

#: A gp3 volume gives 125 MiB/s for nothing; 1,000 MiB/s is the most that is asked for
#: (https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html).
_LEAST_GP3_MIB_PER_SECOND, _MOST_GP3_MIB_PER_SECOND = 125, 1000


def gp3_mib_per_second(instance_types: Sequence[InstanceType]) -> int:
    """Return the throughput of a volume that every type can use, in MiB a second.

    Parameters
    ----------
    instance_types
        The pool's types; the slowest decides.
    """
    slowest = min(instance_type.ebs_bandwidth_mbps for instance_type in instance_types)
    usable = slowest * 10**6 // 8 // 2**20
    return max(_LEAST_GP3_MIB_PER_SECOND, min(_MOST_GP3_MIB_PER_SECOND, usable))
