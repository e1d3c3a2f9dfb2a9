"""`blueprints local up`: runs a blueprint, writes the report, and keeps running until it is stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.measure.statistics.figure_text import amount
from inference_blueprints.report.plan.plan_tables import print_plan
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_contracts.errors import UserError
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.batch.batch_usage import usage_lines
from inference_local.caller_runs import caller_steps, run_callers
from inference_local.controlled_load import run_controlled
from inference_local.local_platform import Deployed, LocalPlatform
from inference_local.measured_run import replay, write_report
from inference_local.processes.child_processes import ProcessDied
from inference_local.processes.interruption import Interrupted
from inference_local.report.report_types import ModelRun, Report
from inference_local.report.terminal import print_report
from inference_local.run_state import RunningModel, RunState, claim
from inference_local.run_steps import Steps
from inference_local.scaling.coming_clients import ComingClients
from inference_local.scaling.scaling_outcome import ScalingOutcome
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.engine_kinds import ENGINE_KINDS, engine_kind
from inference_local.serving.engine_names import EngineName
from inference_local.serving.platform_parts import PlatformPart
from inference_local.serving.readiness import NotReady
from inference_local.signals.signal_usage import signals_usage_lines

_CHECK_SECONDS = 0.5


def run(
    loaded: LoadedBlueprint,
    run_directory: Path,
    *,
    seconds: float | None,
    keep: bool,
    console: Console,
    reported: Callable[[Report], None],
    engines: EngineName = EngineName.SIMULATED,
    control_plane: bool = False,
    gguf: Path | None = None,
) -> None:
    """Deploy a blueprint to this machine, replay a public trace, kill workers, and report.

    seconds: How long requests arrive. None for the default.
    keep: Whether to keep running after the report, until a signal arrives.
    console: Where progress and the report are printed.
    reported: Called with the report, before the platform keeps running.
    engines: The engines that serve the models.
    control_plane: Whether to deploy to a real Kubernetes API server.
    gguf: A file of GGUF to serve in place of random weights.
    Raises UserError if a step fails, or the blueprint has no Kubernetes API server. No process is left
        running.
    """
    if control_plane and loaded.blueprint.spec.cluster.eks is None:
        raise UserError(
            f"--control-plane: got {loaded.file}, which runs on ECS; only a blueprint on EKS has a "
            "Kubernetes API server; leave the option out"
        )
    plan = build_plan(loaded.blueprint)
    kind = engine_kind(engines, loaded.blueprint, gguf)
    print_plan(summarise(loaded.blueprint, plan), console)
    with (
        claim(run_directory) as right,
        LocalPlatform(loaded, plan, run_directory, engines=kind, control_plane=control_plane) as platform,
    ):
        by_clients = platform.is_elastic and kind.elastic_load == "clients"
        kills = not platform.is_elastic or platform.is_controlled or by_clients
        further_steps = 1 + kills + by_clients + caller_steps(loaded.blueprint)
        steps = Steps(console, platform.step_count + further_steps)
        right.publish(RunState(os.getpid(), loaded.file))
        try:
            deployed = platform.start(steps)
            models = tuple(
                RunningModel(endpoint.model, endpoint.base_url, endpoint.context_length)
                for endpoint in deployed.endpoints
            )
            parts, scaling, losses = deployed.parts, None, None
            controllers = None
            batch: tuple[BatchOutcome, ...] | None
            if platform.is_controlled:
                controlled = run_controlled(loaded, platform, models, kind, steps=steps, seconds=seconds)
                runs, scaling, batch = controlled.runs, controlled.scaling, controlled.batch
                controllers = controlled.controllers
                parts = (*parts, *controlled.parts)
            else:
                send = partial(replay, loaded, models, kind, steps=steps, seconds=seconds)
                runs, scaling, further = _follow_load(platform, kind, steps, send)
                parts = (*parts, *further)
            callers = run_callers(
                loaded.blueprint, models, run_directory, engines=kind, steps=steps, seconds=seconds
            )
            parts = (*parts, *callers.parts)
            if not platform.is_controlled:  # its job ran beside the load
                batch = platform.run_batch_jobs(steps)
            if by_clients or not platform.is_elastic:  # where they follow the replay, workers went and came
                losses = platform.kill_workers(steps, replace=keep)
            report = write_report(
                loaded,
                runs,
                parts,
                run_directory,
                engines=kind,
                replacements=deployed.replacements,
                worker_losses=losses,
                batch=batch,
                scaling=scaling,
                controllers=controllers,
                callers=callers,
            )
            _show(report, run_directory, console, _usage(deployed, run_directory))
            reported(report)
            platform.check()
            if keep:
                state = RunState(
                    os.getpid(),
                    loaded.file,
                    "ready",
                    models,
                    parts,
                    deployed.batch,
                    deployed.signals,
                    engines,
                    deployed.replacements,
                    deployed.processes,
                )
                right.publish(state)
                console.print("Running. Press Ctrl-C to stop.")
                _stay(platform, partial(console.print, soft_wrap=True, markup=False, highlight=False))
        except ProcessDied as error:
            raise UserError(error.line) from error
        except NotReady as error:
            raise UserError(str(error)) from error


def _follow_load(
    platform: LocalPlatform, engines: EngineKind, steps: Steps, send: Callable[..., list[ModelRun]]
) -> tuple[list[ModelRun], ScalingOutcome | None, tuple[PlatformPart, ...]]:
    """Replay, and let elastic workers follow the load: what came, how they did, and rows of the parts."""
    if not platform.is_elastic:
        return send(), None, ()
    if engines.elastic_load == "replay":
        elastic, parts = platform.follow_load(steps)
        with elastic:
            runs = send(follows_ramp=True)
        return runs, elastic.outcome(runs), parts
    runs = send()
    elastic, parts = platform.follow_load(steps)
    with steps.step("Let workers follow clients that come and go") as step:
        clients = ComingClients(elastic, engines.answer_seconds, lambda what: step.update(detail=what))
        with elastic:
            outcomes = clients.run()
        outcome = elastic.outcome_of(outcomes, clients.maximum)
        step.result = (
            f"{outcome.workers_min} to {outcome.workers_max} workers, "
            f"{outcome.lost} of {amount(outcome.requests, 'request')} lost"
        )
    return runs, outcome, parts


def replay_again(
    loaded: LoadedBlueprint, state: RunState, run_directory: Path, *, seconds: float | None, console: Console
) -> Report:
    """Replay the trace against a running platform, and replace its report.

    loaded: The blueprint, which states the workloads.
    state: The running platform.
    seconds: How long requests arrive. None for the default.
    console: Where progress and report are shown.
    """
    kind = ENGINE_KINDS[state.engines](loaded.blueprint)
    runs = replay(loaded, state.models, kind, steps=Steps(console, 1), seconds=seconds)
    report = write_report(
        loaded,
        runs,
        state.parts,
        run_directory,
        engines=kind,
        replacements=state.replacements,
    )
    _show(report, run_directory, console)
    return report


def _usage(deployed: Deployed, run_directory: Path) -> tuple[str, ...]:
    """Return how to use the batch API and the signal store."""
    batch = usage_lines(deployed.batch, run_directory) if deployed.batch else ()
    signals = signals_usage_lines(deployed.signals, run_directory) if deployed.signals else ()
    return (*batch, *signals)


def _show(report: Report, run_directory: Path, console: Console, usage: Sequence[str] = ()) -> None:
    print_report(report, console)
    for line in usage:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    console.print(f"report: {run_directory / 'report.html'}", soft_wrap=True, markup=False, highlight=False)


def _stay(platform: LocalPlatform, say: Callable[[str], None]) -> None:
    """Watch the processes until a signal arrives, or a process dies that does not come back."""
    restarts = platform.restarts(say)
    try:
        while True:
            platform.restart_workers(restarts)
            platform.check()
            time.sleep(_CHECK_SECONDS)
    except Interrupted:
        return
