"""The GPUs and EFA devices of a host, as folders of Linux that its containers find at ``/proc`` and ``/sys``.

Sources: sysfs(5), Linux ``Documentation/ABI/stable/sysfs-class-infiniband``, NVIDIA Linux driver README
(``/proc/driver/nvidia``). Each GPU shares a PCI bridge with its share of EFA devices, as on hosts of P5. The
devices do nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import inference_catalog as catalog
from inference_catalog.ecs_hosts import host_kind
from inference_local.emulator.ecs.control.cluster_state import EcsInstance, Shape
from inference_local.serving.isolation import Mount

_NVIDIA, _AMAZON, _GPU_CLASS = "0x10de", "0x1d0f", "0x030200"
_DEVICE: Final = "/dev/infiniband/uverbs"
_NEURON_DEVICE: Final = "/dev/neuron"
_SYSTEM, _DRIVER, _GPUS = "sys", "proc-driver", "nvidia/gpus"
_FIRST_SLOT = 8


def device_mounts(instance: EcsInstance, folder: Path) -> list[Mount]:
    """Return what the containers of a host find of its devices: those of PCI only with EFA.

    folder: Folder of the host, in which the files are written once.
    """
    if not instance.gpu_ids:
        return []
    system, driver = folder / _SYSTEM, folder / _DRIVER
    if not driver.exists():
        _write(system, driver, instance.gpu_ids, instance.efa_interfaces)
    mounts = [Mount(driver, "/proc/driver", read_only=True)]
    return [*mounts, Mount(system, "/sys", read_only=True)] if instance.efa_interfaces else mounts


def lose_gpu(folder: Path) -> None:
    """Remove the last GPU of a host, as if it had fallen off the bus: the driver lists it no more."""
    *_, last = sorted((folder / _DRIVER / _GPUS).iterdir())
    shutil.rmtree(last)


def missing_device(container: Shape, instance: EcsInstance | None) -> str | None:
    """Return a device that a container needs and its host does not have; None if it has all."""
    wanted = [each["hostPath"] for each in (container.get("linuxParameters") or {}).get("devices") or ()]
    if instance is None:
        return next(iter(wanted), None)
    host = catalog.instance_type(instance.instance_type)
    neuron = host.accelerator_count if host_kind(host) == "neuron" else 0
    known = {f"{_DEVICE}{index}" for index in range(instance.efa_interfaces)}
    known |= {f"{_NEURON_DEVICE}{index}" for index in range(neuron)}
    return next((path for path in wanted if path not in known), None)


def _write(system: Path, driver: Path, gpus: Sequence[str], interfaces: int) -> None:
    devices, fabric = system / "bus/pci/devices", system / "class/infiniband"
    for folder in (devices, fabric):
        folder.mkdir(parents=True)
    share = interfaces // len(gpus)
    for bridge, gpu in enumerate(gpus):
        place = f"devices/pci0000:{bridge:02x}/0000:{bridge:02x}:01.0"
        address = f"0000:{bridge:02x}:02.0"
        _device(system / place / address, _NVIDIA, _GPU_CLASS)
        (devices / address).symlink_to(Path("../../..") / place / address)
        known = driver / _GPUS / address
        known.mkdir(parents=True)
        (known / "information").write_text(f"Model: \t Stand-in\nGPU UUID: \t {gpu}\n", encoding="utf-8")
        for slot in range(share):
            address = f"0000:{bridge:02x}:{_FIRST_SLOT + slot:02x}.0"
            _device(system / place / address, _AMAZON, "0x020000")
            (devices / address).symlink_to(Path("../../..") / place / address)
            name = f"rdmap{bridge}s{slot}"
            interface = system / place / address / "infiniband" / name
            interface.mkdir(parents=True)
            (interface / "device").symlink_to("../..")
            (fabric / name).symlink_to(Path("../..") / place / address / "infiniband" / name)


def _device(folder: Path, vendor: str, kind: str) -> None:
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n", encoding="utf-8")
    (folder / "class").write_text(f"{kind}\n", encoding="utf-8")
