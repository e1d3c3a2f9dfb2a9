"""The measure of how far a subject is spread counts code, and no prose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import parameter_files
import pytest


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("pool.gpu_health", [1]),
        ("\nfrom gpu_health.minute import handle", [2]),
        ("def read(*, gpu_health): ...", [1]),
        ("read(gpu_health=None)", [1]),
        ('MODULES = ("gpu_health.minute",)', [1]),
        ('f"{node.gpu_health}"', [1]),
        ('"""About gpu_health."""', None),
        ('class Case:\n    """About gpu_health."""\n    name: str\n    """And gpu_health."""', None),
        ("1  # gpu_health", None),
        ("gpu_health_rules", None),
    ],
)
def test_names_in_code_count(tmp_path: Path, text: str, lines: list[int] | None) -> None:
    (tmp_path / "any.py").write_text(text)
    assert parameter_files.naming_files(tmp_path, "gpu_health").get("any.py") == lines


def test_a_file_of_that_name_counts_and_tests_and_examples_do_not(tmp_path: Path) -> None:
    for name in ("gpu_health.py", "tests/gpu_health.py", "examples/gpu_health.py", ".venv/gpu_health.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert parameter_files.naming_files(tmp_path, "gpu_health") == {"gpu_health.py": []}


def test_an_engine_has_three_spellings_and_its_flags(tmp_path: Path) -> None:
    flags = tmp_path / "catalog" / "data" / "engines" / "llamaCpp.json"
    flags.parent.mkdir(parents=True)
    flags.touch()
    for name, text in {
        "key": 'KEY = "llamaCpp"',
        "module": "import llama_cpp",
        "type": "LlamaCpp()",
        "no": "llama",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    (pattern,) = parameter_files.engines(tmp_path).values()
    files = parameter_files.naming_files(tmp_path, pattern)
    assert set(files) == {"key.py", "module.py", "type.py", flags.relative_to(tmp_path).as_posix()}


def test_a_word_with_other_meanings_counts_where_its_subject_is_named(tmp_path: Path) -> None:
    """Red if a topic of alarms counts as one of events."""
    (tmp_path / "alarms.py").write_text("place.topic")
    (tmp_path / "events.py").write_text("from any import JobKafka\nkafka.topic")
    found = parameter_files.naming_files(tmp_path, "topics?", parameter_files.CONTEXTS["streaming.topic"])
    assert set(found) == {"events.py"}


@pytest.mark.clock
def test_a_reader_may_stop_reading() -> None:
    """Red if `parameter_files.py vllm | head` ends with a traceback."""
    with subprocess.Popen(
        [sys.executable, parameter_files.__file__, "vllm"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
