"""Commands for a platform on this machine: local up, down, status, env, token, signals, replay, prepare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.options import (
    DEFAULT_RUN_DIRECTORY,
    ExitCode,
    NameOrPath,
    Output,
    OutputOption,
    RunDirectory,
    print_json,
)
from inference_blueprints.cli.signal_commands import KeysArgument, SignalArgument, show_signals
from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.operate.check_results import CheckResult
from inference_contracts.errors import UserError
from inference_local.serving.engine_names import EngineName

app = typer.Typer(
    help="Run a platform on this machine. AWS is emulated, engines are simulated or run on CPU.",
    no_args_is_help=True,
)


def register(root: typer.Typer) -> None:
    """Add the group `local` to the command line."""
    root.add_typer(app, name="local")


Seconds = Annotated[float | None, typer.Option("--seconds", min=1.0, help="How long to send requests.")]

Full = Annotated[
    bool, typer.Option("--full", help="Print the whole report. Default: ten lines; the rest is in its file.")
]

ControlPlane = Annotated[
    bool,
    typer.Option(
        "--control-plane",
        help="Deploy to a real Kubernetes API server with fake nodes; the first run builds it.",
    ),
]


@app.command()
def up(
    name_or_path: NameOrPath,
    *,
    keep: Annotated[
        bool | None,
        typer.Option("--keep/--no-keep", help="Keep running until Ctrl-C. Default: only in a terminal."),
    ] = None,
    seconds: Seconds = None,
    engines: Annotated[
        EngineName | None,
        typer.Option(
            "--engines",
            help="vllm: real vLLM on the processors; its first use installs 6 GB. llama: llama-server; its "
            "first use builds it. Default: llama for models of llamaCpp, simulated for others.",
        ),
    ] = None,
    gguf: Annotated[
        Path | None,
        typer.Option(
            "--gguf",
            exists=True,
            dir_okay=False,
            readable=True,
            help="With llama: serve this file of GGUF in place of a model with random weights.",
        ),
    ] = None,
    control_plane: ControlPlane = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=1024,
            max=65535,
            help="Port of the front door, or of the first model's endpoint; others take the next ones. "
            "Default: free ports.",
        ),
    ] = None,
    full: Full = False,
    run_directory: RunDirectory = DEFAULT_RUN_DIRECTORY,
    output: OutputOption = Output.TEXT,
) -> None:
    """Serve the models, deploy to an AWS emulator, replay a trace. At the end, print a report."""
    import sys

    from rich.console import Console

    from inference_local.processes.interruption import Interrupted, interruptible
    from inference_local.report.report_builder import as_dict
    from inference_local.report.report_types import Report
    from inference_local.run import run
    from inference_local.serving.engine_kinds import default_engines

    console = Console(stderr=output is Output.JSON)

    def reported(report: Report) -> None:
        if output is Output.JSON:
            print_json(as_dict(report))

    try:
        with interruptible():
            loaded = load(name_or_path)
            stays = sys.stdout.isatty() if keep is None else keep
            run(
                loaded,
                run_directory,
                seconds=seconds,
                keep=stays,
                engines=engines or default_engines(loaded.blueprint),
                control_plane=control_plane,
                gguf=gguf,
                port=port,
                full=full,
                console=console,
                reported=reported,
            )
    except Interrupted as interruption:
        console.print("Stopped. No process of it is left.")
        raise typer.Exit(interruption.exit_code) from None


@app.command()
def down(run_directory: RunDirectory = DEFAULT_RUN_DIRECTORY, output: OutputOption = Output.TEXT) -> None:
    """Stop the platform that `local up` keeps running."""
    from inference_local import run_state

    stopped = run_state.stop(run_directory)
    if output is Output.JSON:
        print_json({"stopped": stopped})
    else:
        print("stopped" if stopped else "nothing is running")


@app.command()
def status(run_directory: RunDirectory = DEFAULT_RUN_DIRECTORY, output: OutputOption = Output.TEXT) -> None:
    """Show the running platform. The exit code is 1 if nothing is running."""
    from dataclasses import asdict

    from inference_local import run_state

    state = run_state.live_state(run_directory)
    if output is Output.JSON:
        print_json(asdict(state) if state else None)
    elif state is None:
        print("nothing is running; start it with: blueprints local up NAME_OR_PATH")
    else:
        print(f"{state.blueprint}: {state.phase} (process {state.pid})")
        if state.door:
            print(f"front door  {state.door.base_url}")
        for model in state.models:
            print(f"{model.name}  {model.base_url}")
        if state.batch:
            print(f"batch  {state.batch.base_url}")
        if state.signals:
            print(f"signals  {state.signals.address.host}:{state.signals.address.port}")
    if state is None:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def env(run_directory: RunDirectory = DEFAULT_RUN_DIRECTORY, output: OutputOption = Output.TEXT) -> None:
    """Print the variables with which clients use the running platform: eval "$(blueprints local env)".

    They are those of OpenAI's clients for the front door, or without one for the first model, of AWS clients,
    and of the signal library.
    """
    import shlex

    from inference_local import run_state

    state = run_state.live_state(run_directory)
    if state is None:
        raise UserError(
            f"{run_directory}: nothing is running; start it with: blueprints local up NAME_OR_PATH --keep"
        )
    if not state.environment:
        raise UserError(f"{run_directory}: the stacks are not deployed yet; wait, and run the command again")
    if output is Output.JSON:
        print_json(state.variables())
        return
    for name, value in state.variables().items():
        print(f"export {name}={shlex.quote(value)}")


@app.command()
def token(run_directory: RunDirectory = DEFAULT_RUN_DIRECTORY, output: OutputOption = Output.TEXT) -> None:
    """Print a token for the running platform's batch API. It is accepted for 10 minutes."""
    from inference_contracts.batch_limits import ACCEPTED_TOKEN_SECONDS
    from inference_local import run_state
    from inference_local.batch.batch_job import local_token

    state = run_state.live_state(run_directory)
    if state is None or state.batch is None:
        raise UserError(
            f"{run_directory}: no batch API is running; start one with: blueprints local up batch-g6e --keep"
        )
    signed = local_token(state.batch)
    if output is Output.JSON:
        print_json({"token": signed, "expiresInSeconds": ACCEPTED_TOKEN_SECONDS})
    else:
        print(signed)


@app.command()
def signals(
    name: SignalArgument,
    keys: KeysArgument,
    run_directory: RunDirectory = DEFAULT_RUN_DIRECTORY,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the newest values of keys from the running signal store."""
    from inference_blueprints.operate.signals import read_signals
    from inference_local import run_state

    state = run_state.live_state(run_directory)
    if state is None or state.signals is None:
        raise UserError(
            f"{run_directory}: no signal store is running; "
            "start one with: blueprints local up batch-g6e --keep"
        )
    store = state.signals
    show_signals(read_signals(store.address, name, keys, environment=store.environment), keys, output)


@app.command()
def replay(
    name_or_path: NameOrPath,
    *,
    seconds: Seconds = None,
    full: Full = False,
    run_directory: RunDirectory = DEFAULT_RUN_DIRECTORY,
    output: OutputOption = Output.TEXT,
) -> None:
    """Replay the trace again on the running platform. It is scaled to a blueprint's workloads."""
    from inference_local import run_state
    from inference_local.run import replay_again

    state = run_state.live_state(run_directory)
    if state is None or state.phase != "ready":
        raise UserError(
            f"{run_directory}: nothing is running; start it with: blueprints local up {name_or_path} --keep"
        )
    from rich.console import Console

    from inference_local.report.report_builder import as_dict

    console = Console(stderr=output is Output.JSON)
    report = replay_again(
        load(name_or_path), state, run_directory, seconds=seconds, console=console, full=full
    )
    if output is Output.JSON:
        print_json(as_dict(report))


@app.command()
def prepare(
    engines: Annotated[
        Literal["simulated", "vllm", "llama"],
        typer.Option(
            "--engines", help="simulated: NVIDIA Dynamo. vllm, llama: also real engines on the CPU."
        ),
    ] = "simulated",
    output: OutputOption = Output.TEXT,
) -> None:
    """Install NVIDIA Dynamo, which `local up` and `tune` need, and real engines on request."""
    import sys

    from inference_local.environments.dynamo import prepare_dynamo
    from inference_local.processes.interruption import Interrupted, interruptible
    from inference_local.serving.llama_cpp.server_build import llama_server
    from inference_local.serving.vllm_cpu.installation import VLLM

    installations = {
        "simulated": ("python", prepare_dynamo),
        "vllm": ("python", VLLM.python),
        "llama": ("program", llama_server),
    }
    lines = sys.stderr if output is Output.JSON else sys.stdout
    found: dict[str, str] = {}
    try:
        with interruptible():
            for name in dict.fromkeys(("simulated", engines)):
                key, install = installations[name]
                program = install(lambda line: print(line, file=lines, flush=True))
                found = {key: str(program)}
                if output is Output.TEXT:
                    print(f"{'NVIDIA Dynamo' if name == 'simulated' else name} runs with {program}")
    except Interrupted as interruption:
        raise typer.Exit(interruption.exit_code) from None
    if output is Output.JSON:
        print_json(found)


def provide_dynamo() -> None:
    """Let this process import Dynamo's replay, for `blueprints tune` and `blueprints benchmark`.

    Raises UserError if it is not installed.
    """
    from inference_local.environments.dynamo import provide_dynamo as provide

    provide()


def verify_local(loaded: LoadedBlueprint, run_directory: Path) -> Iterator[CheckResult]:
    """Check the platform that runs here, for `blueprints verify --local`."""
    from inference_local import local_verification

    return local_verification.verify_local(loaded, run_directory)
