"""The runner, on benchmarks made for the test."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import benchmarks
from benchmarks import __main__ as runner
from benchmarks.harness.figure import ROOT, BenchmarkError, Figure
from benchmarks.harness.recorded_results import (
    Results,
    UnknownBenchmarkError,
    benchmark_of,
    choose,
    discover,
    markdown,
)

_FAST = '"""What fast measures."""\nfrom benchmarks.harness.figure import Figure\n'
_FIGURES = {
    "fast": "[Figure('fast', 2.0, 's', baseline=4.0, goal=1.0)]",
    "slow": "[Figure('slow', 9.0, 's', baseline=4.0, goal=1.5), Figure('slow_total', 1.0, 'MiB')]",
}

#: Exit code, figures and page.
BenchmarkRun = tuple[int, list[dict[str, Any]], str]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with two benchmarks, one that fails, and two modules that are none."""
    folder = tmp_path / "made_up_benchmarks"
    (folder / "harness").mkdir(parents=True)
    (folder / "harness" / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "__main__.py").write_text("raise AssertionError('not a benchmark')")
    for name, figures in _FIGURES.items():
        (folder / f"{name}.py").write_text(f"{_FAST}import helper\ndef measure():\n    return {figures}\n")
    (folder / "broken.py").write_text(
        '"""Broken."""\nfrom benchmarks.harness.figure import BenchmarkError\n'
        "def measure():\n    raise BenchmarkError('python ended with 3')\n"
    )
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "helper.py").write_text("import over_helper\n")
    (tmp_path / "contracts" / "over_helper.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "contracts")
    yield importlib.import_module("made_up_benchmarks")
    for name in [
        name for name in sys.modules if name.startswith(("made_up_benchmarks", "helper", "over_helper"))
    ]:
        del sys.modules[name]


@pytest.fixture
def run(package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., BenchmarkRun]:
    monkeypatch.setattr(runner, "benchmarks", package)

    def call(only: str = "") -> BenchmarkRun:
        results, page = tmp_path / "out" / "results.json", tmp_path / "benchmarks.md"
        code = runner.main(["--only", only, "--results", str(results), "--page", str(page)])
        return code, Results.read(results).figures, page.read_text()

    return call


def test_benchmarks_are_the_modules_of_the_folder(package: ModuleType) -> None:
    assert list(discover(package)) == ["broken", "fast", "slow"]
    assert discover(package)["fast"].description == "What fast measures."


def test_every_shipped_benchmark_is_found_and_says_what_it_measures() -> None:
    found = discover(benchmarks)
    files = {path.stem for path in Path(benchmarks.__file__).parent.glob("*.py")} - {"__init__", "__main__"}
    assert set(found) == files
    assert all(each.description.endswith(".") for each in found.values())


def test_results_have_the_stated_fields(run: Callable[..., BenchmarkRun]) -> None:
    code, entries, _ = run("fast")
    assert code == 0
    assert len(entries) == 1
    assert entries[0] == {
        "name": "fast",
        "value": 2.0,
        "unit": "s",
        "baseline": 4.0,
        "ratio": 0.5,
        "goal": 1.0,
        "met": True,
        "simulated": False,
    }


def test_only_keeps_the_results_of_the_others(run: Callable[..., BenchmarkRun]) -> None:
    run("fast")
    code, entries, _ = run("slow")
    assert code == 1, "slow misses its goal"
    assert [entry["name"] for entry in entries] == ["fast", "slow", "slow_total"]
    run("slow")
    assert len(run("fast")[1]) == 3


def test_a_figure_that_is_no_longer_measured_leaves_the_results(
    run: Callable[..., BenchmarkRun], tmp_path: Path
) -> None:
    _, entries, _ = run()
    results = tmp_path / "out" / "results.json"
    left = [{**entries[0], "name": name} for name in ("fast_once", "slow_once")]
    Results(Results.read(results).runs, [*entries, *left]).write(results)
    assert [entry["name"] for entry in run("fast")[1]] == ["fast", "slow", "slow_once", "slow_total"]


def test_a_figure_is_that_of_the_longest_name_that_it_begins_with() -> None:
    names = ["gpu_health", "gpu_health_month"]
    assert benchmark_of("gpu_health_month, wrong drains", names) == "gpu_health_month"
    assert benchmark_of("gpu_health false drains", names) == "gpu_health"
    assert benchmark_of("other", names) is None


def test_every_recorded_figure_is_of_a_benchmark() -> None:
    recorded = Results.read(ROOT / "benchmarks" / "results.json")
    names = discover(benchmarks)
    assert {benchmark_of(each["name"], names) for each in recorded.figures} <= recorded.runs.keys()
    assert recorded.runs.keys() <= names.keys()


def test_a_benchmark_that_fails_does_not_stop_the_others(
    run: Callable[..., BenchmarkRun], capsys: pytest.CaptureFixture[str]
) -> None:
    code, entries, page = run()
    assert code == 1
    assert [entry["name"] for entry in entries] == ["fast", "slow", "slow_total"]
    assert "broken: python ended with 3" in capsys.readouterr().err
    assert re.search(r"## broken\n\nBroken\.\n\n\*\*Failed\*\* on 20.*`: python ended with 3\n", page)


@pytest.mark.parametrize("error", ["BenchmarkError('no reply')", "KeyError('no reply')"])
def test_a_goal_that_was_met_is_not_met_once_the_benchmark_fails(
    run: Callable[..., BenchmarkRun], package: ModuleType, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    """A failed benchmark kept its earlier "yes" on the page."""
    assert "| at most 1 | yes |" in run("fast")[2]

    def fail() -> list[Figure]:
        raise {"B": BenchmarkError, "K": KeyError}[error[0]]("no reply")

    monkeypatch.setattr(importlib.import_module(f"{package.__name__}.fast"), "measure", fail)
    code, entries, page = run("fast")
    assert (code, len(entries)) == (1, 1)
    assert "| fast | 2 s | 4 s | 0.50 | at most 1 | **failed** |" in page
    assert "no reply" in page.partition("## fast")[2].partition("##")[0]
    monkeypatch.undo()


@pytest.mark.parametrize("changed", ["made_up_benchmarks/fast.py", "contracts/over_helper.py"])
def test_a_row_says_that_the_measured_code_changed(
    run: Callable[..., BenchmarkRun], package: ModuleType, tmp_path: Path, changed: str
) -> None:
    """Whether the benchmark's file changes or a module that one of its modules imports."""
    page = run("fast")[2]
    assert re.search(r"\| yes \| 20\d\d-\d\d-\d\d, `[0-9a-f]{8}( with changes)?` \| A \|", page)
    file = tmp_path / changed
    file.write_text(f"{file.read_text()}# another\n")
    results = Results.read(tmp_path / "out" / "results.json")
    assert re.search(r"`, changed since \| A \|", markdown(results, discover(package)))
    (tmp_path / "contracts" / "unrelated.py").write_text("")
    file.write_text(file.read_text().replace("# another\n", ""))
    assert "changed since |" not in markdown(results, discover(package))


def test_every_row_has_its_machine(run: Callable[..., BenchmarkRun]) -> None:
    page = run("fast")[2]
    assert re.search(r"^- Machine A: .+, \d+ cores, \d+ GiB$", page, re.MULTILINE)
    assert "## slow\n\nWhat fast measures.\n\n**Not measured**" in page


def test_an_unknown_name_is_one_sentence(
    package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "benchmarks", package)
    results = tmp_path / "results.json"
    assert runner.main(["--only", "fats", "--results", str(results), "--page", str(tmp_path / "page")]) == 2
    assert capsys.readouterr().err == "benchmarks: got benchmark fats; known are broken, fast, slow\n"
    assert not results.exists()
    with pytest.raises(UnknownBenchmarkError):
        choose(discover(package), ["fats"])


def test_the_page_shows_every_figure_and_what_is_measured(run: Callable[..., BenchmarkRun]) -> None:
    run("fast")
    page = run("slow")[2]
    assert page.startswith("# Benchmarks\n\n`make bench` writes this page")
    assert "| fast | 2 s | 4 s | 0.50 | at most 1 | yes | 20" in page
    assert "| slow | 9 s | 4 s | 2.25 | at most 1.5 | **no** | 20" in page
    assert "| slow_total | 1 MiB |  |  |  |  | 20" in page
    assert "## fast\n\nWhat fast measures." in page


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Figure("a", 3.0, "s", baseline=2.0, goal=1.5), True),
        (Figure("a", 3.1, "s", baseline=2.0, goal=1.5), False),
        (Figure("a", 0.3, "s", goal=0.3), True),
        (Figure("a", 0.31, "s", goal=0.3), False),
        (Figure("a", 3.0, "s", baseline=2.0), None),
    ],
)
def test_a_goal_bounds_the_ratio_or_without_baseline_the_value(figure: Figure, *, met: bool | None) -> None:
    assert figure.met is met
