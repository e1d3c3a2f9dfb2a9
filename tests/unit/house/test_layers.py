"""Plugins of the tests: processes share the layers, hours pass after collection, a run prints its cost."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from inference_blueprints.resources import root

_TEST = """import os, pathlib, pytest, time
COLLECTED = time.time()
@pytest.mark.parametrize("value", ["a@b", "x[y]", "http://127.0.0.1:9/v1", 4])
def test_one(value):
    assert time.time() - COLLECTED > 7000
    with pathlib.Path(os.environ["RAN"]).open("a") as log:
        log.write(f"{os.environ['PYTEST_XDIST_WORKER']} {pathlib.Path(__file__).parts[-3]}\\n")
"""


def test_a_layer_stays_in_one_process_and_the_run_prints_its_cost(tmp_path: Path) -> None:
    layers = {"local": ("targets", "emulator"), "templates": ("a", "b"), "unit": ("c", "d", "e", "f")}
    for layer, folders in layers.items():
        for folder in folders:
            place = tmp_path / "tests" / layer / folder
            place.mkdir(parents=True)
            for number in range(2):
                (place / f"test_{number}.py").write_text(_TEST)
    shutil.copy(root() / "tests" / "conftest.py", tmp_path / "tests")
    shutil.copytree(root() / "tests" / "plugins", tmp_path / "tests" / "plugins")
    ran = tmp_path / "ran"
    options = ["--numprocesses", "2", "--dist", "loadgroup", "--hours-since-collection", "2", "-q"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "tests", *options],
        cwd=tmp_path,
        env={**os.environ, "RAN": str(ran), "PYTEST_ADDOPTS": "--import-mode=importlib"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    lines = [line.split() for line in ran.read_text().splitlines()]
    workers = {layer: {worker for worker, where in lines if where == layer} for layer in layers}
    count = 4 * 2 * sum(map(len, layers.values()))
    assert len(lines) == count
    assert re.search(
        rf"^{count} tests, \d+ s wall, [1-9]\d* s processor; slowest files:$", result.stdout, re.MULTILINE
    )
    assert len(workers["local"]) == len(workers["templates"]) == 1
    assert workers["local"] != workers["templates"], "neither waits for the other"
