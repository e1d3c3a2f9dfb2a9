"""How long `blueprints local up quickstart-g6e` takes until its model answers.

Engines need only the serving plan, so they start before templates, emulator and deployment. The goal is 8 s
on two processors without other work. `first_answer_share` compares it with the time until the stacks are
deployed too; the goal is half of it, whatever else the machine does. `first_answer_processor` is the
processor time of all processes until the answer.
"""

from __future__ import annotations

import contextlib
import signal
import statistics
import subprocess
import tempfile
import time

import psutil

from benchmarks.harness.figure import BLUEPRINTS, ROOT, BenchmarkError, Figure

#: What its processes run.
PROGRAMS = ("local/inference_local/local_commands.py",)
_ROUNDS = 3
_GOAL_SECONDS = 8.0
_GOAL_SHARE = 0.5
#: What a run prints when the model answers, and when the stacks are deployed.
_ANSWERS, _DEPLOYED = "curl ", "[4/6] Deploy all stacks to the emulator: "


def measure() -> list[Figure]:
    """Take the measurement. The first run, which may unpack programs, does not count."""
    _run()
    answered, processor, deployed = (
        statistics.median(column) for column in zip(*(_run() for _ in range(_ROUNDS)), strict=True)
    )
    return [
        Figure("first_answer", answered, "s", goal=_GOAL_SECONDS),
        Figure("first_answer_share", answered, "s", baseline=deployed, goal=_GOAL_SHARE),
        Figure("first_answer_processor", processor, "s"),
    ]


def _run() -> tuple[float, float, float]:
    """Return seconds and processor seconds until the model answers, and seconds until all is deployed."""
    with tempfile.TemporaryDirectory(prefix="first-answer-") as name:
        options = ["--no-keep", "--run-directory", f"{name}/run"]
        command = [str(BLUEPRINTS), "local", "up", "quickstart-g6e", *options]
        begin = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        answered = processor = 0.0
        lines = []
        with process:
            for line in process.stdout or ():
                lines.append(line)
                if line.startswith(_ANSWERS):
                    answered, processor = time.monotonic() - begin, _processor_seconds(process.pid)
                if line.startswith(_DEPLOYED):
                    deployed = time.monotonic() - begin
                    process.send_signal(signal.SIGINT)
                    return answered, processor, deployed
    raise BenchmarkError(f"the run ended before its stacks were deployed:\n{''.join(lines)}")


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process and its children, with those that have ended."""
    parent = psutil.Process(pid)
    seconds = 0.0
    for each in (parent, *parent.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds
