"""Builds the Java programs with the JDK and Maven of this machine, and returns commands that start them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from inference_blueprints.resources import root
from inference_contracts.errors import UserError
from inference_local.processes.child_processes import log_tail
from inference_runtime import runtime_directory

_SHOWN_LINES = 15
_FOLDER = "java"
#: Times of compilation matter more than those of running: programs live for some minutes.
START_QUICKLY = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def missing_tools() -> str | None:
    """Return why the Java programs cannot be built here, or None.

    Returns: A sentence for people.
    """
    absent = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not found; install a JDK of version 17 or newer, and Maven 3.8 or newer"
    if not (root() / "pyproject.toml").is_file():
        return "Java programs are built in a checkout of the repository, and this package is installed"
    if not os.access(runtime_directory() / _FOLDER, os.W_OK):
        return f"Java programs are built in {runtime_directory() / _FOLDER}, which cannot be written"
    return None


def build(modules: Sequence[str], log_path: Path) -> None:
    """Compile modules, with those that they need, unless that has been done since their last change.

    modules: Names of modules of ``runtime/java``.
    log_path: File with Maven's output. Its folder is created.
    Raises UserError if the build fails.
    """
    folder = runtime_directory() / _FOLDER
    digest = _digest(folder)
    with _alone(folder):
        marks = [folder / each / "target" / "built-from" for each in modules]
        if all(mark.is_file() and mark.read_text(encoding="utf-8") == digest for mark in marks):
            return
        log_path.parent.mkdir(parents=True, exist_ok=True)
        command = ["mvn", "--batch-mode", "--quiet", "--file", str(folder / "pom.xml")]
        command += ["--projects", ",".join(modules), "--also-make", "-DskipTests", "package"]
        with log_path.open("wb") as log:
            code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
        if code != 0:
            raise UserError(
                f"Maven could not build {', '.join(modules)} (exit code {code}); its output is in "
                f"{log_path}:\n" + log_tail(log_path, _SHOWN_LINES)
            )
        for mark in marks:
            mark.write_text(digest, encoding="utf-8")


def java_command(
    module: str,
    program: str,
    *arguments: str,
    temporary: Path,
    machine: Sequence[str] = START_QUICKLY,
    options: Sequence[str] = (),
) -> list[str]:
    """Return the command that runs a program of a built module.

    program: Its class, with the package.
    arguments: Arguments of the program.
    temporary: Folder for temporary files. It is emptied: a program that was killed left its files there.
        Java does not read ``TMPDIR``.
    machine: Collector and compiler of the virtual machine.
    options: Its further options.
    Raises RuntimeError if the module is not built.
    """
    target = runtime_directory() / _FOLDER / module / "target"
    path, java = target / "class-path", shutil.which("java")
    if java is None or not path.is_file():
        raise RuntimeError(f"{module} is not built")
    class_path = os.pathsep.join((str(target / "classes"), path.read_text(encoding="utf-8").strip()))
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    # Without counters, which are files in /tmp wherever temporary files are.
    own = ("-XX:-UsePerfData", f"-Djava.io.tmpdir={temporary.resolve()}")
    return [java, *machine, *own, *options, "-cp", class_path, program, *arguments]


def _digest(folder: Path) -> str:
    """Return a digest of every source."""
    digest = hashlib.sha256()
    for file in sorted(_sources(folder)):
        digest.update(str(file.relative_to(folder)).encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    for shared in sorted((root() / "contracts" / "inference_contracts").glob("*.json")):
        digest.update(hashlib.sha256(shared.read_bytes()).digest())
    return digest.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(folder):
        names[:] = [each for each in names if each != "target"]
        yield from (Path(directory) / each for each in files)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one build run at a time: two would write the same files."""
    lock = folder / "target" / "lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
