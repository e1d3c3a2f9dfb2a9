"""The runner of the first tier: how it divides layers, and what it reports."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import run_tests
from run_tests import Part

from inference_blueprints.resources import root

PASSES = "def test_one(): pass\n"
FAILS = "def test_one(): assert 'what' == 'it says'\n"
CRASHES = "import os\ndef test_one(): os._exit(7)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "charts").mkdir(parents=True)
    (tmp_path / "tests" / "charts" / "test_one.py").write_text(PASSES)
    for folder, count in {"spec": 90, "serving": 50, "local": 8, "empty": 0}.items():
        place = tmp_path / "tests" / "unit" / folder / "below"
        place.mkdir(parents=True)
        for number in range(count):
            (place / f"test_{number}.py").write_text(PASSES)
    (tmp_path / "tests" / "unit" / "test_top.py").write_text(PASSES)
    return tmp_path


def test_a_layer_is_divided_into_parts_of_about_equal_size(checkout: Path) -> None:
    parts = run_tests.parts_of("unit", checkout)
    assert [part.title for part in parts] == ["unit 1 of 2", "unit 2 of 2"]
    assert [part.folders for part in parts] == [
        ("tests/unit/spec",),
        ("tests/unit/local", "tests/unit/serving", "tests/unit/test_top.py"),
    ]
    assert [part.files for part in parts] == [90, 59]
    assert [part.title for part in run_tests.parts_of("charts", checkout)] == ["charts"]


@pytest.mark.parametrize("layer", run_tests.LAYERS)
def test_no_file_of_tests_is_left_out(layer: str) -> None:
    folder = root() / "tests" / layer
    parts = run_tests.parts_of(layer)
    assert sum(part.files for part in parts) == len(list(folder.rglob("test_*.py")))
    covered = [
        file
        for file in folder.rglob("test_*.py")
        if any(file.is_relative_to(root() / each) for part in parts for each in part.folders)
    ]
    assert len(covered) == sum(part.files for part in parts)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (PASSES, 0, "1 passed, 0 failed"),
        (FAILS, 1, "0 passed, 1 failed"),
        (CRASHES, 1, "0 passed, 1 failed"),
        ("import missing_module\n", 1, "0 passed, 1 failed"),
        ("import pytest\n@pytest.mark.thorough\n" + PASSES, 0, "0 passed, 0 failed"),
    ],
    ids=["passes", "fails", "crashes", "cannot be imported", "belongs to another suite"],
)
def test_a_run_says_how_its_tests_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    place = tmp_path / "tests" / "unit" / "spec"
    place.mkdir(parents=True)
    (place / "test_one.py").write_text(text)
    shutil.copy(root() / "tests" / "conftest.py", tmp_path / "tests")
    shutil.copytree(root() / "tests" / "plugins", tmp_path / "tests" / "plugins")
    shutil.copy(root() / "pyproject.toml", tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(root()), *sys.path]))
        runs, peak = run_tests.run_all(
            run_tests.parts_of("unit", tmp_path), ["-p", "no:cacheprovider"], tmp_path
        )
    lines = [*run_tests.summary(runs, 1.0, peak)]
    assert lines[-1] == said, capfd.readouterr().out
    assert all(run.passed for run in runs) == (code == 0)
    shown = capfd.readouterr().out
    assert ("it says" in shown) == (text == FAILS)


def test_a_part_without_a_report_has_failed(tmp_path: Path) -> None:
    part = Part("unit", ("tests/unit/spec",), 1, "unit 1 of 1")

    class Ended:
        pid = 0

    run = run_tests.Run(part, tmp_path / "log", tmp_path / "report", Ended(), exit_code=0)  # type: ignore[arg-type]
    assert not run.passed
    run.costs = json.loads('{"tests": 0, "outcomes": {}, "files": {}}')
    assert run.passed
    assert list(run_tests.summary([run], 1.0, 2**31))[-2:] == [
        "1 s, 0 s of processor time, at most 2.0 GiB of memory",
        "0 passed, 0 failed",
    ]
