"""Tasks of one host that share its Neuron devices: each has cores of its own, which begin where AWS says."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.task_start.conftest import Start

VARIABLE = "NEURON_VISIBLE_DEVICES"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "neuron"
    made.mkdir()
    return made


def document(folder: Path, devices: int) -> dict[str, Any]:
    """Return the document of a worker on trn2.48xlarge: 16 devices of 4 logical cores."""
    share = {"folder": str(folder), "devices": devices, "of": 16, "cores": 4, "variable": VARIABLE}
    return {"network": "awsvpc", "neuron": share}


def test_four_workers_of_a_host_have_the_cores_of_four_devices_each(start: Start, folder: Path) -> None:
    """It turns red if two workers get one core, or a slice begins at no multiple of its length."""
    tasks = [start(document(folder, 4)) for _ in range(4)]
    cores = {task.heard()["variables"][VARIABLE] for task in tasks}
    assert cores == {"0-15", "16-31", "32-47", "48-63"}


def test_a_worker_gives_its_cores_back_however_it_ends(start: Start, folder: Path) -> None:
    """It turns red if the lock of a killed worker stays, or an engine does not inherit it."""
    first, second = start(document(folder, 8)), start(document(folder, 8))
    taken = [task.heard()["variables"][VARIABLE] for task in (first, second)]
    third = start(document(folder, 8))
    assert third.end() == 2
    assert "other tasks use the host's 16 Neuron devices: no 8 beside each other are free" in third.errors()
    first.process.send_signal(signal.SIGKILL)
    first.end()
    assert start(document(folder, 8)).heard()["variables"][VARIABLE] == taken[0]


def test_parts_of_another_size_do_not_overlap(start: Start, folder: Path) -> None:
    """While a new configuration is rolled out, workers of both sizes are on a host."""
    assert start(document(folder, 4)).heard()["variables"][VARIABLE] == "0-15"
    assert start(document(folder, 8)).heard()["variables"][VARIABLE] == "32-63"
    assert start(document(folder, 4)).heard()["variables"][VARIABLE] == "16-31"


def test_a_folder_that_is_missing_is_said(start: Start, folder: Path) -> None:
    task = start(document(folder / "absent", 4))
    assert task.end() == 2
    assert "device-0 cannot be opened: No such file or directory" in task.errors()


def test_a_wrong_share_is_said(start: Start, folder: Path) -> None:
    task = start(document(folder, 17))
    assert task.end() == 2
    assert "neuron: got" in task.errors()
