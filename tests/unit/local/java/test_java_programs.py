"""Where Java is missing, the reason is said; a build happens once per change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inference_contracts.errors import UserError
from inference_local.java import java_programs
from tests.unit.stand_in_programs import Printed, StandInPrograms


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one module, and tools that nobody runs."""
    (tmp_path / "contracts" / "inference_contracts").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    module = tmp_path / "runtime" / "java" / "module"
    (module / "target").mkdir(parents=True)
    (module / "Main.java").write_text("class Main {}")
    (module / "target" / "class-path").write_text("/m2/a.jar:/m2/b.jar\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("java", "javac", "mvn"):
        (programs / name).touch()
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(java_programs, "root", lambda: tmp_path)
    monkeypatch.setattr(java_programs, "runtime_directory", lambda: tmp_path / "runtime")
    return tmp_path


@pytest.fixture
def maven(monkeypatch: pytest.MonkeyPatch) -> StandInPrograms:
    programs = StandInPrograms(monkeypatch)
    programs.add("mvn", lambda _: Printed())
    return programs


def test_a_build_happens_again_only_after_a_change(checkout: Path, maven: StandInPrograms) -> None:
    log = checkout / "logs" / "maven.log"
    for _ in range(2):
        java_programs.build(["module"], log)
    assert len(maven.calls) == 1
    (checkout / "runtime" / "java" / "module" / "Main.java").write_text("class Main { int a; }")
    java_programs.build(["module"], log)
    assert len(maven.calls) == 2
    (checkout / "contracts" / "inference_contracts" / "headers.json").write_text("{}")
    java_programs.build(["module"], log)
    assert len(maven.calls) == 3


def test_a_build_that_fails_shows_maven_s_words_and_is_not_taken_for_done(
    checkout: Path, maven: StandInPrograms
) -> None:
    log = checkout / "maven.log"
    maven.add("mvn", lambda _: Printed("cannot find symbol\n", code=1))
    for count in (1, 2):
        with pytest.raises(UserError, match="cannot find symbol"):
            java_programs.build(["module"], log)
        assert len(maven.calls) == count


def test_the_command_has_the_class_path_of_the_build(checkout: Path) -> None:
    folder = checkout / "run" / "tmp"
    command = java_programs.java_command("module", "a.Main", "one", temporary=folder, options=("-Xmx1m",))
    target = checkout / "runtime" / "java" / "module" / "target" / "classes"
    assert command[0] == str(checkout / "bin" / "java")
    assert command[-4:] == ["-cp", f"{target}:/m2/a.jar:/m2/b.jar", "a.Main", "one"]
    assert "-Xmx1m" in command
    with pytest.raises(RuntimeError, match="other is not built"):
        java_programs.java_command("other", "a.Main", temporary=folder)


def test_temporary_files_are_in_the_run_s_folder_and_a_killed_program_s_go(checkout: Path) -> None:
    """Each run left 55 MB of Flink in /tmp, whatever TMPDIR said."""
    folder = checkout / "run" / "tmp"
    for _ in range(2):
        command = java_programs.java_command("module", "a.Main", temporary=folder)
        assert list(folder.iterdir()) == []
        (folder / "minicluster_1").mkdir()
    assert f"-Djava.io.tmpdir={folder}" in command
    assert "-XX:-UsePerfData" in command


def test_missing_tools_are_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java_programs.missing_tools() is None
    (checkout / "pyproject.toml").unlink()
    assert "this package is installed" in (java_programs.missing_tools() or "")
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool != "java" else "/usr/bin/java")
    assert (java_programs.missing_tools() or "").startswith(
        "javac, mvn not found; install a JDK of version 17"
    )
