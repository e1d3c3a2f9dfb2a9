"""The lines of a run beside its steps: where models and the front door answer, and what to do next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.spec.source import shipped
from inference_local.local_platform import Deployed, LocalPlatform
from inference_local.report.report_builder import curl_line
from inference_local.report.terminal import Answering, print_answering
from inference_local.run_state import RunningDoor, RunState
from inference_local.run_steps import shown
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.serving_parts import in_short


def say_answering(platform: LocalPlatform, endpoints: Sequence[LocalEndpoint], console: Console) -> None:
    """Print the endpoint of each model."""
    serving = platform.serving
    print_answering(
        [
            Answering(
                each.model,
                each.base_url,
                curl_line(each.base_url, each.shown_name, serving.images_of(each.model)),
            )
            for each in endpoints
        ],
        in_short(serving.deployments),
        _seconds_since_start(),
        shown(serving.logs),
        console,
    )
    console.print("All else follows while you try it. Ctrl-C ends everything.")


def say_door(door: RunningDoor, logs: Path, console: Console) -> None:
    """Print the address of the front door, and a command that asks it with a key."""
    curl = curl_line(door.base_url, door.model, key=door.keys.get(door.team))
    print_answering(
        [Answering("front door", door.base_url, curl)],
        f"Envoy and policy real, key of team {door.team}",
        _seconds_since_start(),
        shown(logs),
        console,
    )


def _seconds_since_start() -> float:
    """Return how long this process runs, with the start of its interpreter (field 22 of proc_pid_stat(5))."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def usage(deployed: Deployed, run_directory: Path) -> tuple[str, ...]:
    """Return how to use the batch API and the signal store."""
    from inference_local.batch.batch_job import usage_lines
    from inference_local.signal_store import signals_usage_lines

    program = _program()
    batch = usage_lines(deployed.batch, run_directory, program) if deployed.batch else ()
    signals = signals_usage_lines(deployed.signals, run_directory, program) if deployed.signals else ()
    return (*batch, *signals)


def _program() -> str:
    """Return how this shell calls the command: `make run` needs no folder of it on the PATH."""
    return "blueprints" if shutil.which("blueprints") else shlex.quote(shown(Path(sys.argv[0]).absolute()))


def next_steps(loaded: LoadedBlueprint, state: RunState, *, keep: bool) -> tuple[tuple[str, str], ...]:
    """Return what still answers, and what to do next."""
    addresses = [state.door.base_url] if state.door else [model.base_url for model in state.models]
    up = ("still up", f"{', '.join(addresses)} until Ctrl-C")
    names = {str(path): name for name, path in shipped().items()}
    file = names.get(loaded.file, loaded.file)
    return (
        *((up,) if keep else ()),
        ("next", f"{_program()} plan {file} says what it needs and costs in an account"),
    )
