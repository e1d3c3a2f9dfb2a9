"""Runs the pinned CDK command line against the emulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from inference_blueprints import tools
from inference_blueprints.operate.cloudformation.stack_events import ResourceEvent, causes, parse_event
from inference_contracts.errors import UserError
from inference_local.emulator.emulator import Emulator
from inference_local.processes.child_processes import ProcessGroup, RunningProcess, log_tail

_POLL_SECONDS = 0.05
_CONCURRENT_STACKS = 4


class DeployError(UserError):
    """The CDK command line failed.

    failures: The failed resources. The first one is the cause. Empty if CloudFormation refused the template;
        then the last line of the output has the reason.
    """

    def __init__(self, message: str, failures: Sequence[ResourceEvent], log_path: Path) -> None:
        self.failures = tuple(failures)
        self.log_path = log_path
        cause = "; ".join(causes(failures)) or log_tail(log_path, lines=1)
        super().__init__(f"{message}: {cause}; the full output is in {log_path}")


def bootstrap(emulator: Emulator, *, log_path: Path, on_line: Callable[[str], None]) -> None:
    """Run ``cdk bootstrap`` for the emulator's account and region.

    log_path: Where the output goes.
    on_line: Called with each line of output.
    Raises DeployError when it fails.
    """
    target = f"aws://{emulator.account}/{emulator.region}"
    _run(emulator, ["bootstrap", target], log_path=log_path, on_line=on_line, on_event=lambda _: None)


def deploy(
    emulator: Emulator,
    assembly_directory: Path,
    *,
    log_path: Path,
    on_line: Callable[[str], None],
    on_event: Callable[[ResourceEvent], None],
    stacks: Sequence[str] = (),
) -> None:
    """Run ``cdk deploy`` on a synthesised app.

    emulator: A running, bootstrapped emulator.
    assembly_directory: The folder that ``cdk synth`` wrote, usually ``cdk.out``.
    on_event: Called with each change of a resource's state.
    stacks: Names of the stacks to deploy, with their dependencies. By default, all stacks.
    Raises DeployError when it fails, with the failed resources and their reasons.
    """
    options = [
        *("--app", str(assembly_directory.resolve()), *(stacks or ["--all"]), "--require-approval", "never"),
        *("--progress", "events", "--concurrency", str(_CONCURRENT_STACKS)),
    ]
    _run(emulator, ["deploy", *options], log_path=log_path, on_line=on_line, on_event=on_event)


def destroy(
    emulator: Emulator, assembly_directory: Path, *, log_path: Path, on_line: Callable[[str], None]
) -> None:
    """Run ``cdk destroy --all`` on a synthesised app.

    assembly_directory: The folder that ``cdk synth`` wrote, usually ``cdk.out``.
    Raises DeployError when it fails.
    """
    options = ["--app", str(assembly_directory.resolve()), "--all", "--force"]
    _run(emulator, ["destroy", *options], log_path=log_path, on_line=on_line, on_event=lambda _: None)


def _run(
    emulator: Emulator,
    arguments: Sequence[str],
    *,
    log_path: Path,
    on_line: Callable[[str], None],
    on_event: Callable[[ResourceEvent], None],
) -> None:
    home = log_path.parent.resolve() / "cdk-home"
    home.mkdir(parents=True, exist_ok=True)
    environment = {
        **emulator.environment(),
        "PATH": str(tools.node().parent),
        "HOME": str(home),
        "CDK_HOME": str(home),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
    }
    log_path.unlink(missing_ok=True)
    failures: list[ResourceEvent] = []
    with ProcessGroup() as group:
        command = [*tools.cdk(), *arguments, "--ci", "--no-color", "--no-notices"]
        process = group.start(
            "cdk", command, environment=environment, log_path=log_path, working_directory=home
        )
        for line in _lines(process, emulator):
            on_line(line)
            event = parse_event(line)
            if event is not None:
                on_event(event)
                if event.is_cause:
                    failures.append(event)
        exit_code = process.popen.wait()
    if exit_code:
        raise DeployError(f"cdk {arguments[0]} failed with code {exit_code}", failures, log_path)


def _lines(process: RunningProcess, emulator: Emulator) -> Iterator[str]:
    """Yield the lines of a log while the process writes them, and check that the emulator runs."""
    with process.log_path.open(encoding="utf-8", errors="replace") as log:
        part = ""
        while True:
            has_ended = process.popen.poll() is not None
            part += log.read()
            *lines, part = part.split("\n")
            yield from lines
            if has_ended:
                break
            emulator.check()
            time.sleep(_POLL_SECONDS)
        if part:
            yield part
