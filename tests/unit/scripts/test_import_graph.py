"""Which tests are near a change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import import_graph
import pytest


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which a test starts a program by its name and copies code by its folder."""
    files: Mapping[str, str] = {
        "app.py": "",
        "inference_blueprints/__init__.py": "",
        "inference_blueprints/resources.py": "",
        "inference_blueprints/spec/__init__.py": "",
        "inference_blueprints/spec/loader.py": "from inference_blueprints import resources",
        "inference_blueprints/spec/data/keys.json": "{}",
        "catalog/inference_catalog/__init__.py": "",
        "catalog/inference_catalog/models.py": "",
        "catalog/inference_catalog/charts.py": (
            "from inference_blueprints import resources\nCHARTS = resources.charts_directory()"
        ),
        "catalog/inference_catalog/data/models.json": "{}",
        "runtime/batch/__init__.py": "",
        "runtime/batch/worker/__init__.py": "",
        "runtime/batch/worker/concurrency_limit.py": "",
        "runtime/batch/worker/limits.py": (
            "import inference_catalog.models\nTEXT = 'inference_blueprints.spec.loader'"
        ),
        "benchmarks/speed.py": "PROGRAM = 'batch.worker.limits'",
        "tests/conftest.py": "",
        "tests/local/conftest.py": "import inference_catalog.models",
        "tests/local/test_run.py": "PROGRAM = 'batch.worker'",
        "tests/unit/test_loader.py": "from inference_blueprints.spec.loader import load",
        "tests/unit/test_handler.py": "HANDLER = 'batch.worker.concurrency_limit.handle'",
        "tests/unit/test_staging.py": "FOLDER = 'runtime/batch'",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("test", "steps", "expected"),
    [
        ("tests/unit/test_loader.py", 1, "inference_blueprints/spec/loader.py"),
        ("tests/unit/test_loader.py", 2, "inference_blueprints/resources.py"),
        ("tests/local/test_run.py", 1, "runtime/batch/worker/concurrency_limit.py"),
        ("tests/unit/test_handler.py", 1, "runtime/batch/worker/__init__.py"),
        ("tests/local/test_run.py", 2, "catalog/inference_catalog/models.py"),
        ("tests/unit/test_staging.py", 1, "runtime/batch/worker/concurrency_limit.py"),
    ],
)
def test_imports_names_folders_and_fixtures_lead_to_a_file(
    checkout: Path, test: str, steps: int, expected: str
) -> None:
    graph = import_graph.imports(checkout)
    assert expected in import_graph.near(graph, test, steps)
    assert expected not in import_graph.near(graph, test, steps - 1)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("inference_blueprints/spec/loader.py", {"inference_blueprints/spec/loader.py"}),
        ("runtime/batch/removed.py", {"runtime/batch/removed.py"}),
        (
            "catalog/inference_catalog/data/models.json",
            {
                "catalog/inference_catalog/__init__.py",
                "catalog/inference_catalog/charts.py",
                "catalog/inference_catalog/models.py",
            },
        ),
        ("charts/model/templates/pod.yaml", {"catalog/inference_catalog/charts.py"}),
        ("helm_values/charts.yaml", {"inference_blueprints/resources.py"}),
        ("docs/batch.md", set()),
        ("README.md", set()),
    ],
)
def test_a_change_concerns_the_code_that_reads_it(checkout: Path, changed: str, expected: set[str]) -> None:
    assert import_graph.files_of_change([changed], import_graph.imports(checkout), checkout) == expected


def test_a_benchmark_reaches_what_its_programs_import(checkout: Path) -> None:
    """A text in a program is no import: else each benchmark would reach almost every file."""
    found = import_graph.reachable(checkout, "benchmarks/speed.py")
    assert {"runtime/batch/worker/limits.py", "catalog/inference_catalog/models.py"} <= found
    assert "inference_blueprints/spec/loader.py" not in found
