"""An environment of its own with the packages of a lock file, installed once into the cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints import tools
from inference_blueprints.folder_lock import folder_lock
from inference_contracts.errors import UserError
from inference_contracts.units import GB, GIB
from inference_local.processes.child_processes import ProcessGroup, ending_words, log_tail

#: The platform that `make lock` resolves the lock files for: manylinux_2_31.
OLDEST_GLIBC = (2, 31)


@dataclass(frozen=True)
class NeededMachine:
    """On what the packages of an environment run."""

    processors: Mapping[str, str]
    """What ``uname -m`` says, and how it is called."""
    pythons: tuple[tuple[int, int], ...]
    cpu_flags: Mapping[str, str]
    """Features of an x86-64 processor that it needs, each with what needs it."""


@dataclass(frozen=True)
class LocalMachine:
    """What the installation needs to know of a machine."""

    system: str
    machine: str
    cpu_flags: frozenset[str]
    glibc: tuple[int, ...] | None
    """Its release; None if the system has another C library."""
    python: tuple[int, int]
    free_bytes: int
    """Free disk space below the cache folder."""
    uv: Path | None
    """The program that installs packages; None if it is missing."""


def this_host(folder: Path) -> LocalMachine:
    """Describe this machine, with the free disk space below a folder, which need not exist."""
    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    return LocalMachine(
        system=platform.system(),
        machine=platform.machine(),
        cpu_flags=_cpu_flags(Path("/proc/cpuinfo")),
        glibc=_glibc(),
        python=sys.version_info[:2],
        free_bytes=shutil.disk_usage(existing).free,
        uv=tools.uv(),
    )


def problems(host: LocalMachine, folder: Path, needed_bytes: int, needed: NeededMachine) -> list[str]:
    """Return everything that prevents the installation, each with its remedy.

    folder: Where it installs.
    needed_bytes: Disk space that it still needs.
    needed: What its packages run on.
    """
    found = []
    if host.system != "Linux" or host.machine not in needed.processors:
        found.append(
            f"this machine is {host.system} on {host.machine}, the wheels need Linux on "
            f"{' or '.join(needed.processors.values())}; use such a machine, a virtual machine or a container"
        )
    elif host.machine == "x86_64":
        found += [
            f"the processor has no {flag.upper()} (/proc/cpuinfo), which {user} need; use a processor with "
            "it, or in a virtual machine pass the host's processor through"
            for flag, user in needed.cpu_flags.items()
            if flag not in host.cpu_flags
        ]
    if host.system == "Linux" and (host.glibc is None or host.glibc < OLDEST_GLIBC):
        got = "no glibc" if host.glibc is None else f"glibc {_dotted(host.glibc)}"
        found.append(f"the system has {got}, the wheels need {_dotted(OLDEST_GLIBC)}; use a newer system")
    if host.python not in needed.pythons:
        pythons = " or ".join(map(_dotted, needed.pythons))
        found.append(
            f"this is Python {_dotted(host.python)}, the wheels are for {pythons}; "
            f"install the library with Python {_dotted(needed.pythons[0])}"
        )
    if host.free_bytes < needed_bytes:
        found.append(
            f"{folder} has {host.free_bytes / GIB:.1f} GiB of free disk space, the installation needs "
            f"{needed_bytes / GIB:.1f} GiB more; free some, or set XDG_CACHE_HOME to one on another disk"
        )
    if host.uv is None:
        found.append("the program uv is not installed; run `make setup`, or: pip install uv")
    return found


def _cpu_flags(cpuinfo: Path) -> frozenset[str]:
    if not cpuinfo.is_file():
        return frozenset()
    lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def _glibc() -> tuple[int, ...] | None:
    try:
        name, _, release = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (AttributeError, OSError, ValueError):  # no Unix, or another C library
        return None
    return tuple(int(part) for part in release.split(".")[:2]) if name == "glibc" else None


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))


_SHOWN_LINES = 12
_SECONDS_BETWEEN_REPORTS = 15.0
#: An interruption loses the packages that are being downloaded: few at a time.
_UV_SETTINGS = {"UV_CONCURRENT_DOWNLOADS": "4", "PYTHONDONTWRITEBYTECODE": ""}
#: uv removes its temporary files within this time after SIGTERM.
_GRACE_SECONDS = 5.0
_FIRST_PYTHON = (3, 11)

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageEnvironment:
    """The packages of a lock file."""

    name: str
    """Name of its folder in the cache."""
    title: str
    """What it is called in messages."""
    requirements: Path
    """The lock file, with hashes."""
    installed_bytes: int
    """Disk space with compiled bytecode. uv's cache has hard links to the same data."""
    downloaded_bytes: int
    """Size of the wheels."""
    duration: str
    """How long the installation takes with a fast connection, such as ``10 seconds``."""
    check: Path
    """Program that imports what is needed, and writes the versions of packages to a file of JSON."""
    machine: NeededMachine
    """What its packages run on."""
    change: Callable[[Path], None] = lambda _: None
    """Changes the folder of packages after the installation."""
    changes: Sequence[str] = ()
    """Texts on which the changes depend: another text is another environment."""

    def python(self, report: Report) -> Path:
        """Return its Python. The first use installs the packages.

        An interrupted installation continues at the next call: complete downloads are kept. A second process
        that calls it at the same time waits for the first.

        report: Called with a line about what will be installed, and while it is. Not called once it is
            installed.
        Raises UserError if this machine cannot run the packages, with every reason. If the installation
            fails, with uv's last lines.
        """
        if not self.is_complete:
            uv = self._checked_uv()

            def waiting() -> AbstractContextManager[None]:
                report(f"another process installs {self.folder}; waiting for it")
                return nullcontext()

            with folder_lock(self.folder, waiting=waiting):
                if not self.is_complete:  # else the other process has installed it
                    self._install(uv, report)
        return self._python

    @property
    def folder(self) -> Path:
        """Its folder. Every version of the library with equal packages and the same Python shares it."""
        python = sys.version_info[:2]
        # That of Python 3.11 has the name that it had when it was the only one.
        others = [] if python == _FIRST_PYTHON else [f"{python[0]}.{python[1]}"]
        recipe = "\0".join([self.requirements.read_text(encoding="utf-8"), *self.changes, *others])
        digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
        return tools.shared_cache_directory() / self.name / digest

    @property
    def packages(self) -> Path:
        """The folder of the installed packages."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "env" / "lib" / version / "site-packages"

    @property
    def is_complete(self) -> bool:
        """Whether it is installed."""
        # The second condition fails if the Python that the environment was created from has been removed.
        return self._marker.is_file() and self._python.exists()

    def locked_version(self, package: str) -> str:
        """Return the release of a package in the lock file."""
        return locked_version(self.requirements, package)

    @property
    def _python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

    @property
    def _marker(self) -> Path:
        return self.folder / "installed.json"

    def _checked_uv(self) -> Path:
        host = this_host(self.folder)
        needed = max(self.installed_bytes - disk_bytes(self.folder), 0)
        found = problems(host, self.folder, needed, self.machine)
        if host.uv is None or found:
            raise UserError("\n".join(f"{self.title} cannot be installed: {problem}" for problem in found))
        return host.uv

    def _install(self, uv: Path, report: Report) -> None:
        begin = time.monotonic()
        folder = self.folder
        environment, downloads = folder / "env", folder / "downloads"
        _remove_drafts(downloads)
        used = disk_bytes(folder)
        report(
            f"installing {self.title}: {self.installed_bytes / GB:.1f} GB on disk in {folder}, "
            f"{self.downloaded_bytes / GB:.1f} GB to download, {self.duration} with a fast connection"
            + (f"; continues an interrupted installation, {used / GB:.1f} GB are there" if used else "")
        )
        log_path = folder / "install.log"
        log_path.unlink(missing_ok=True)
        self._marker.unlink(missing_ok=True)
        settings = ["--cache-dir", str(downloads), "--no-progress"]
        with ProcessGroup(grace_seconds=_GRACE_SECONDS) as group:
            steps = _Steps(group, self, log_path, report)
            base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
            interpreter = str(base if base.exists() else sys.executable)
            steps.run(
                "uv venv", [uv, "venv", *settings, "--allow-existing", "--python", interpreter, environment]
            )
            sync: list[str | Path] = [uv, "pip", "sync", *settings, "--python", self._python]
            sync += ["--link-mode", "hardlink", "--require-hashes", "--only-binary", ":all:"]
            sync += ["--compile-bytecode", self.requirements]
            steps.run("uv pip sync", sync)
            self.change(self.packages)
            report(f"checking that {self.title} starts")
            checked = folder / "checked.json"
            steps.run("the import", [self._python, "-I", str(self.check), checked])
        shutil.rmtree(downloads)  # hard links: the environment keeps the files
        checked.rename(self._marker)
        report(f"installed {disk_bytes(folder) / GB:.1f} GB in {time.monotonic() - begin:.0f} s")
        self._report_others(report)

    def _report_others(self, report: Report) -> None:
        """Name environments of other releases. Another checkout may use them, so they stay."""
        folder = self.folder
        for other in sorted(path for path in folder.parent.iterdir() if path.is_dir() and path != folder):
            size = disk_bytes(other) / GB
            report(f"{other} holds another release ({size:.1f} GB); remove it if nothing else uses it")


def locked_version(requirements: Path, package: str) -> str:
    """Return the release of a package in a lock file."""
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return next(line.split()[0].split("==")[1] for line in lines if line.startswith(f"{package}=="))


class _Steps:
    """Runs the programs of an installation, one after the other, and reports the growth of its folder."""

    def __init__(
        self, group: ProcessGroup, environment: PackageEnvironment, log_path: Path, report: Report
    ) -> None:
        self._group = group
        self._environment = environment
        self._folder = environment.folder
        self._log_path = log_path
        self._report = report

    def run(self, name: str, command: Sequence[str | Path]) -> None:
        # In the folder, so that settings for uv in the user's working directory do not apply.
        process = self._group.start(
            name,
            command,
            environment={**os.environ, **_UV_SETTINGS},
            log_path=self._log_path,
            working_directory=self._folder,
        )
        while True:
            try:
                code = process.popen.wait(_SECONDS_BETWEEN_REPORTS)
            except subprocess.TimeoutExpired:
                used, whole = disk_bytes(self._folder), self._environment.installed_bytes
                self._report(f"{name}: {used / GB:.1f} of about {whole / GB:.1f} GB")
                continue
            break
        if code:
            shown = log_tail(self._log_path, _SHOWN_LINES).replace("\n", "\n  ")
            raise UserError(
                f"{self._environment.title} could not be installed: {name} {ending_words(code)}:\n  {shown}\n"
                f"Complete downloads are kept in {self._folder}. Check the connection and the free disk "
                f"space, and run the command again; all output is in {self._log_path}"
            )
        self._group.forget(process)


def _remove_drafts(downloads: Path) -> None:
    """Remove the incomplete downloads of an interrupted installation; uv does not use them again."""
    for draft in downloads.glob(".tmp*"):
        if draft.is_dir():
            shutil.rmtree(draft)
        else:
            draft.unlink()


def disk_bytes(folder: Path) -> int:
    """Return the disk space of a folder's files. A file with several hard links counts once."""
    sizes: dict[int, int] = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # uv may have moved it meanwhile
                status = (Path(directory) / name).lstat()
                sizes[status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())
