"""What the containers of a host with EFA find of its devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_start.nearest_interfaces import nearest_interfaces

from inference_local.ecs_platform.gpu_exporter import exposition
from inference_local.emulator.ecs.agent.host_devices import device_mounts, lose_gpu, missing_device
from inference_local.emulator.ecs.control.cluster_state import EcsInstance
from inference_local.emulator.ecs.host_groups import host_size

GPUS = tuple(f"GPU-{index}" for index in range(8))


def host(interfaces: int) -> EcsInstance:
    place = ("host", "i-1", "10.64.0.1", "gpu", "p5en.48xlarge", "us-west-2b")
    return EcsInstance(*place, 1, 1, GPUS, 0, efa_interfaces=interfaces)


def container(devices: int) -> dict[str, object]:
    names = [f"/dev/infiniband/uverbs{index}" for index in range(devices)]
    return {"linuxParameters": {"devices": [{"hostPath": name, "containerPath": name} for name in names]}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What a container of a p5en host finds, with the mounts in their places."""
    for each in device_mounts(host(16), tmp_path / "host"):
        place = tmp_path / "root" / each.path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(each.source)
    return tmp_path / "root"


def test_the_tasks_of_a_host_share_its_interfaces(root: Path) -> None:
    # 16 EFA interfaces for 8 GPUs: Amazon EC2 User Guide, "EFA for AI/ML and HPC", supported types.
    found = [nearest_interfaces(2, gpu, root) for gpu in GPUS]
    assert len({name for names in found for name in names}) == 16
    assert len(nearest_interfaces(8, ",".join(GPUS[:4]), root)) == 8


def test_a_host_without_efa_shows_its_gpus_only(tmp_path: Path) -> None:
    [mount] = device_mounts(host(0), tmp_path)
    assert mount.path == "/proc/driver"
    assert len(list((mount.source / "nvidia/gpus").iterdir())) == len(GPUS)


def test_a_lost_gpu_is_listed_no_more(tmp_path: Path) -> None:
    [mount] = device_mounts(host(0), tmp_path)
    lose_gpu(tmp_path)
    device_mounts(host(0), tmp_path)
    said = exposition(mount.source / "nvidia/gpus")
    assert [gpu for gpu in GPUS if f'UUID="{gpu}"' in said] == list(GPUS[:-1])


def test_a_host_has_the_neuron_devices_of_its_type() -> None:
    """Neuron devices are no GPUs of ECS, and hosts with GPUs have none."""
    trainium = EcsInstance("host", "i-1", "10.64.0.1", "pool", "trn2.48xlarge", "us-east-2b", 1, 1, (), 0)
    names = [f"/dev/neuron{index}" for index in range(17)]
    devices = [{"hostPath": name, "containerPath": name} for name in names]
    assert missing_device({"linuxParameters": {"devices": devices[:16]}}, trainium) is None
    assert missing_device({"linuxParameters": {"devices": devices}}, trainium) == "/dev/neuron16"
    assert missing_device({"linuxParameters": {"devices": devices}}, host(16)) == "/dev/neuron0"
    assert host_size("trn2.48xlarge").gpus == 0
    assert host_size("p5en.48xlarge").gpus == 8


def test_a_device_that_the_host_does_not_have_is_named() -> None:
    assert missing_device(container(16), host(16)) is None
    assert missing_device(container(17), host(16)) == "/dev/infiniband/uverbs16"
    assert missing_device(container(1), host(0)) == "/dev/infiniband/uverbs0"
    assert missing_device({}, None) is None
