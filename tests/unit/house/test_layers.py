"""Two processes share the tests, and no layer that has to stay together is torn."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from inference_blueprints.resources import root

_TEST = """import os, pathlib, pytest
@pytest.mark.parametrize("value", ["a@b", "x[y]", "http://127.0.0.1:9/v1", 4])
def test_one(value):
    with pathlib.Path(os.environ["RAN"]).open("a") as log:
        log.write(f"{os.environ['PYTEST_XDIST_WORKER']} {pathlib.Path(__file__).parts[-3]}\\n")
"""


def test_a_layer_stays_in_one_process_and_files_are_shared(tmp_path: Path) -> None:
    layers = {"local": ("serving", "emulator"), "templates": ("a", "b"), "unit": ("c", "d", "e", "f")}
    for layer, folders in layers.items():
        for folder in folders:
            place = tmp_path / "tests" / layer / folder
            place.mkdir(parents=True)
            for number in range(2):
                (place / f"test_{number}.py").write_text(_TEST)
    shutil.copy(root() / "tests" / "conftest.py", tmp_path / "tests")
    ran = tmp_path / "ran"
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "tests", "--numprocesses", "2", "--dist", "loadgroup", "-q"],
        cwd=tmp_path,
        env={**os.environ, "RAN": str(ran), "PYTEST_ADDOPTS": "--import-mode=importlib"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    lines = [line.split() for line in ran.read_text().splitlines()]
    workers = {layer: {worker for worker, where in lines if where == layer} for layer in layers}
    assert len(lines) == 4 * 2 * sum(map(len, layers.values()))
    assert len(workers["local"]) == len(workers["templates"]) == 1
    assert workers["local"] != workers["templates"], "neither waits for the other"
