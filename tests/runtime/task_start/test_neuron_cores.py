"""Tasks of one host that share its Neuron devices: each has cores of its own, which begin where AWS says."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.task_start.conftest import Start, TasksHere

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


def cores_of(here: TasksHere, folder: Path, devices: int) -> str:
    """Return the cores of another worker."""
    _, variables = here.prepare(document(folder, devices))
    return variables[VARIABLE]


def test_four_workers_of_a_host_have_the_cores_of_four_devices_each(here: TasksHere, folder: Path) -> None:
    """It turns red if two workers get one core, or a slice begins at no multiple of its length."""
    cores = {cores_of(here, folder, 4) for _ in range(4)}
    assert cores == {"0-15", "16-31", "32-47", "48-63"}


@pytest.mark.clock
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


def test_parts_of_another_size_do_not_overlap(here: TasksHere, folder: Path) -> None:
    """While a new configuration is rolled out, workers of both sizes are on a host."""
    assert cores_of(here, folder, 4) == "0-15"
    assert cores_of(here, folder, 8) == "32-63"
    assert cores_of(here, folder, 4) == "16-31"


@pytest.mark.parametrize(
    ("place", "devices", "words"),
    [
        (".", 4, "other tasks use the host's 16 Neuron devices: no 4 beside each other are free"),
        ("absent", 4, "device-0 cannot be opened: No such file or directory"),
        (".", 17, "neuron: got"),
    ],
    ids=["all are taken", "no folder", "a wrong share"],
)
def test_what_cannot_be_had_is_said(
    here: TasksHere, folder: Path, capsys: pytest.CaptureFixture[str], *, place: str, devices: int, words: str
) -> None:
    cores_of(here, folder, 16)
    assert here.start(document(folder / place, devices)) == 2
    assert words in capsys.readouterr().err
