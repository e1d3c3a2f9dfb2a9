"""The Neuron devices of a task, on a host whose tasks share the devices.

Every task may open all devices of its host, and its server uses the cores that a variable names, as AWS
documents for several servers of an instance. On Trn2 the first core must be a multiple of the number of the
server's cores (``vllm-neuron/docs/tutorials/tutorial-gpt-oss.md`` and ``tutorial-epd-1e-1pd-xeypd.md`` of
aws-neuron/aws-neuron-sdk at 81ce03a). With ``NEURON_RT_NUM_CORES`` the runtime chooses free cores, and no
document says that it chooses such ones.

A task locks each of its devices by a file. A lock belongs to the open file, which the engine keeps over exec
and which the kernel closes with the engine (flock(2)).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from task_start.start_document import NeuronShare, TaskStartError


def take_cores(share: NeuronShare) -> str:
    """Lock the first free devices that are a part of the host, and return the numbers of their cores.

    Raises TaskStartError if no part is free, or the folder cannot be used.
    """
    for first in range(0, share.of - share.devices + 1, share.devices):
        if _takes(share.folder, range(first, first + share.devices)):
            return f"{first * share.cores}-{(first + share.devices) * share.cores - 1}"
    raise TaskStartError(
        f"other tasks use the host's {share.of} Neuron devices: no {share.devices} beside each other are free"
    )


def _takes(folder: Path, devices: range) -> bool:
    """Lock all devices or none."""
    locks: list[int] = []
    for device in devices:
        try:
            lock = os.open(folder / f"device-{device}", os.O_RDWR | os.O_CREAT, 0o660)
        except OSError as error:
            raise TaskStartError(f"{folder}/device-{device} cannot be opened: {error.strerror}") from error
        locks.append(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            for each in locks:
                os.close(each)
            return False
    for each in locks:
        os.set_inheritable(each, True)  # noqa: FBT003 - positional only
    return True
