"""Whether this machine can run the packages of an environment."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints import tools
from inference_contracts.units import GIB

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
