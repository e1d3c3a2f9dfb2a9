"""EFA interfaces are chosen by the PCI bridges that they share with a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_start.nearest_interfaces import nearest_interfaces
from task_start.start_document import TaskStartError

BRIDGES = 4


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host with four bridges, each with two GPUs and four EFA devices; folders as Linux names them."""
    devices = tmp_path / "sys/bus/pci/devices"
    fabric = tmp_path / "sys/class/infiniband"
    for folder in (devices, fabric):
        folder.mkdir(parents=True)
    for bridge in range(BRIDGES):
        place = tmp_path / f"sys/devices/pci0000:{bridge:02x}/0000:{bridge:02x}:01.0"
        for slot in range(2):
            address = f"0000:{bridge:02x}:{slot + 2:02x}.0"
            gpu = place / address
            gpu.mkdir(parents=True)
            (gpu / "vendor").write_text("0x10de\n")
            (gpu / "class").write_text("0x030200\n")
            (devices / address).symlink_to(gpu)
            known = tmp_path / "proc/driver/nvidia/gpus" / address.upper()
            known.mkdir(parents=True)
            (known / "information").write_text(f"Model: \t H200\nGPU UUID: \t GPU-{bridge}-{slot}\n")
        for slot in range(4):
            device = place / f"0000:{bridge:02x}:{slot + 8:02x}.0"
            device.mkdir()
            (device / "vendor").write_text("0x1d0f\n")
            (devices / device.name).symlink_to(device)
            # Numbered against the order of the bridges.
            interface = fabric / f"rdmap{9 - bridge}s{slot}"
            (device / "infiniband" / interface.name).mkdir(parents=True)
            (device / "infiniband" / interface.name / "device").symlink_to(device)
            interface.symlink_to(device / "infiniband" / interface.name)
    return tmp_path


def test_interfaces_of_the_bridge_are_shared_between_its_gpus(host: Path) -> None:
    every = {
        f"GPU-{bridge}-{slot}": nearest_interfaces(2, f"GPU-{bridge}-{slot}", host)
        for bridge in range(BRIDGES)
        for slot in range(2)
    }
    assert every["GPU-0-0"] == ["rdmap9s0", "rdmap9s1"]
    assert every["GPU-0-1"] == ["rdmap9s2", "rdmap9s3"]
    assert every["GPU-3-1"] == ["rdmap6s2", "rdmap6s3"]
    assert len({name for names in every.values() for name in names}) == 16


def test_a_worker_with_several_gpus_gets_those_of_each(host: Path) -> None:
    assert nearest_interfaces(4, "GPU-0-0,GPU-2-1", host) == ["rdmap7s2", "rdmap7s3", "rdmap9s0", "rdmap9s1"]
    assert len(nearest_interfaces(16, "all", host)) == 16


def test_more_interfaces_than_the_gpus_have_is_an_error(host: Path) -> None:
    with pytest.raises(TaskStartError, match="3 EFA interfaces are wanted, 2 belong"):
        nearest_interfaces(3, "GPU-0-0", host)


def test_a_host_without_devices_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TaskStartError, match="0 EFA devices and the task 0 of its 0 GPUs"):
        nearest_interfaces(1, "all", tmp_path)
