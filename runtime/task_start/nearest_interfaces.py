"""EFA interfaces nearest to a task's GPUs.

All tasks of a host see all its EFA devices, because a task definition names devices of the host. Each GPU
gets the same number of interfaces that share the longest path of PCI bridges with it, and no interface goes
to two GPUs. All tasks compute the same assignment from the same folders of Linux, so they need not talk to
each other. libfabric reads the result from ``FI_EFA_IFACE`` (fi_efa(7)).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from task_start.start_document import TaskStartError

_NVIDIA, _ACCELERATOR_CLASSES = "0x10de", ("0x0302", "0x0300")
_UUID = re.compile(r"^GPU UUID:\s*(\S+)", re.MULTILINE)


def nearest_interfaces(count: int, visible: str | None, root: Path = Path("/")) -> list[str]:
    """Return the names of the interfaces that a task uses.

    count: Number of interfaces.
    visible: ``NVIDIA_VISIBLE_DEVICES``: the UUIDs of the GPUs that ECS gave to the task, or ``all``.
    root: Folder that contains ``sys`` and ``proc``.
    Raises TaskStartError if the host has no such devices, or too few of them.
    """
    interfaces = {
        path.name: (path / "device").resolve() for path in (root / "sys/class/infiniband").glob("*")
    }
    gpus = {
        path.name.lower(): path.resolve()
        for path in (root / "sys/bus/pci/devices").glob("*")
        if _text(path / "vendor") == _NVIDIA and _text(path / "class").startswith(_ACCELERATOR_CLASSES)
    }
    own = [gpu for gpu in _own_gpus(root, visible) if gpu in gpus]
    if not interfaces or not own:
        raise TaskStartError(
            f"the host has {len(interfaces)} EFA devices and the task {len(own)} of its {len(gpus)} GPUs: "
            "check the pool's instance type and the task's devices"
        )
    assigned = _assigned(gpus, interfaces)
    chosen = sorted(name for gpu in own for name in assigned[gpu])
    if len(chosen) < count:
        raise TaskStartError(f"{count} EFA interfaces are wanted, {len(chosen)} belong to the task's GPUs")
    return chosen[:count]


def _assigned(gpus: Mapping[str, Path], interfaces: Mapping[str, Path]) -> dict[str, list[str]]:
    """Return the interfaces of each GPU: the nearest pairs first."""
    share = len(interfaces) // len(gpus)
    pairs = sorted(
        (-_common(place, where), gpu, name)
        for gpu, place in gpus.items()
        for name, where in interfaces.items()
    )
    assigned: dict[str, list[str]] = {gpu: [] for gpu in gpus}
    free = set(interfaces)
    for _, gpu, name in pairs:
        if name in free and len(assigned[gpu]) < share:
            assigned[gpu].append(name)
            free.discard(name)
    return assigned


def _common(first: Path, second: Path) -> int:
    """Return the number of leading folders that two paths share."""
    return len(Path(os.path.commonpath([first, second])).parts)


def _own_gpus(root: Path, visible: str | None) -> Sequence[str]:
    """Return the PCI addresses of the task's GPUs. The NVIDIA runtime shows a container only these."""
    wanted = None if visible in (None, "", "all") else set(str(visible).split(","))
    found = []
    for path in sorted((root / "proc/driver/nvidia/gpus").glob("*")):
        match = _UUID.search(_text(path / "information"))
        if wanted is None or (match and match[1] in wanted):
            found.append(path.name.lower())
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""
