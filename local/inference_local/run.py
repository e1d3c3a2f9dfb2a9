"""`blueprints local up`: runs a blueprint, writes the report, and keeps running until it is stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.measure.statistics import amount
from inference_blueprints.report.plan.short_plan import headline
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_contracts.errors import UserError
from inference_local.environments.run_requirements import check_machine, skipped_steps
from inference_local.local_platform import Deployed, LocalPlatform
from inference_local.processes.child_processes import ProcessDied
from inference_local.processes.interruption import Interrupted
from inference_local.report.report_types import ModelRun, Report
from inference_local.report.terminal import print_report, print_summary
from inference_local.run_lines import next_steps, say_answering, say_door, usage
from inference_local.run_scope import RunScope
from inference_local.run_state import RunningModel, RunState, claim
from inference_local.run_steps import (
    BATCH_BESIDE,
    BATCH_JOBS,
    CALLERS,
    CLICKS,
    CLIENTS,
    KILLS,
    PAGES,
    PROMETHEUS,
    REPLAY,
    SLOW_WORKER,
    TWO_RAMPS,
    Steps,
    shown,
)
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.engine_kinds import ENGINE_KINDS, engine_kind
from inference_local.serving.engine_names import EngineName
from inference_local.serving.platform_parts import PlatformPart
from inference_local.serving.readiness import NotReady
from inference_local.serving.serving_parts import in_short

if TYPE_CHECKING:
    from inference_local.batch.batch_outcome import BatchOutcome
    from inference_local.scaling.scaling_outcome import ScalingOutcome

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
    port: int | None = None,
    full: bool = False,
) -> None:
    """Serve a blueprint's models on this machine, deploy it, replay a public trace, kill workers, and report.

    The models answer first: they need only the serving plan. All else goes on while they do.

    seconds: How long requests arrive. None for the default.
    keep: Whether to keep running after the report, until a signal arrives.
    console: Where progress and the report are printed.
    reported: Called with the report, before the platform keeps running.
    engines: The engines that serve the models.
    control_plane: Whether to deploy to a real Kubernetes API server.
    gguf: A file of GGUF to serve in place of random weights.
    port: Port of the first model's endpoint; those of further models follow it. With a front door, its port.
        None for free ports.
    full: Whether to print the whole report in place of ten lines.
    Raises UserError if a step fails, the blueprint has no Kubernetes API server, or this machine lacks
        something. No process is left running.
    """
    if control_plane and loaded.blueprint.spec.cluster.eks is None:
        raise UserError(
            f"--control-plane: got {loaded.file}, which runs on ECS; only a blueprint on EKS has a "
            "Kubernetes API server; leave the option out"
        )
    with claim(run_directory) as right:
        plan = build_plan(loaded.blueprint)
        kind = engine_kind(engines, loaded.blueprint, gguf)
        check_machine(plan, run_directory, port)
        skipped = skipped_steps(loaded.blueprint, simulated=engines is EngineName.SIMULATED)
        for line in (headline(summarise(loaded.blueprint, plan)), *skipped):
            console.print(line, markup=False, highlight=False)
        with LocalPlatform(
            loaded, plan, run_directory, engines=kind, control_plane=control_plane, port=port
        ) as platform:
            steps = Steps(console, (*platform.scope.step_titles, *_load_titles(platform.scope)))
            starting = RunState(os.getpid(), loaded.file, engines=engines)
            right.publish(starting)
            try:
                answering = _serve(platform, steps, starting, console)
                right.publish(answering)
                deployed = platform.deploy(steps)
                ready = replace(
                    answering,
                    parts=deployed.parts,
                    batch=deployed.batch,
                    signals=deployed.signals,
                    environment=deployed.environment,
                    door=deployed.door,
                )
                right.publish(ready)
                if deployed.door is not None:
                    say_door(deployed.door, run_directory.resolve() / "front-door" / "logs", console)
                for line in usage(deployed, run_directory):
                    console.print(line, soft_wrap=True, markup=False, highlight=False)
                report, parts = _load(
                    loaded,
                    platform,
                    deployed,
                    ready.models,
                    run_directory,
                    kind=kind,
                    steps=steps,
                    seconds=seconds,
                    replaced=keep,
                )
                _show(report, run_directory, console, full=full, further=next_steps(loaded, ready, keep=keep))
                reported(report)
                platform.check()
                if keep:
                    right.publish(replace(ready, phase="ready", parts=parts))
                    console.print("Running. Press Ctrl-C to stop.")
                    _stay(platform, partial(console.print, soft_wrap=True, markup=False, highlight=False))
            except ProcessDied as error:
                raise UserError(error.line) from error
            except NotReady as error:
                raise UserError(str(error)) from error


def _serve(platform: LocalPlatform, steps: Steps, state: RunState, console: Console) -> RunState:
    """Start the engines, and print where they answer. Return the state of the run with them."""
    endpoints = platform.serve(steps)
    serving = platform.serving
    if platform.scope.has_front_door:  # callers have its address, and no model's
        names = ", ".join(each.model for each in endpoints)
        console.print(f"{names}: {in_short(serving.deployments)}; log: {shown(serving.logs)}", markup=False)
        console.print("The front door follows the stacks. Ctrl-C ends everything.")
    else:
        say_answering(platform, endpoints, console)
    return replace(
        state,
        models=tuple(
            RunningModel(endpoint.model, endpoint.base_url, endpoint.context_length, endpoint.addresses)
            for endpoint in endpoints
        ),
        parts=serving.parts(),
        replacements=serving.replacements(),
        processes=serving.served_processes(),
    )


def _load_titles(scope: RunScope) -> Iterator[str]:
    """Yield what the steps of `_load` do."""
    spec, load = scope.blueprint.spec, scope.engines.elastic_load
    if scope.is_controlled:
        yield from (PROMETHEUS, TWO_RAMPS, SLOW_WORKER, BATCH_BESIDE)
    elif not scope.is_elastic:
        yield REPLAY
    elif load == "replay":
        yield from (PROMETHEUS, REPLAY)
    else:
        yield from (REPLAY, PROMETHEUS, CLIENTS)
    if any(model.real_time for model in spec.models):
        yield PAGES
    if spec.streaming:
        yield CLICKS
    if scope.has_callers:
        yield CALLERS
    if scope.runs_batch and not scope.is_controlled:
        yield BATCH_JOBS
    if not scope.is_elastic or load == "clients":
        yield KILLS


def _load(
    loaded: LoadedBlueprint,
    platform: LocalPlatform,
    deployed: Deployed,
    models: Sequence[RunningModel],
    run_directory: Path,
    *,
    kind: EngineKind,
    steps: Steps,
    seconds: float | None,
    replaced: bool,
) -> tuple[Report, tuple[PlatformPart, ...]]:
    """Send everything that a run sends, kill workers, and write the report. Return it, and all parts.

    replaced: Whether killed workers are started again.
    """
    from inference_local.controlled_load import run_controlled
    from inference_local.measured_run import replay, run_callers, write_report

    parts, losses = deployed.parts, None
    controllers = None
    scaling: ScalingOutcome | None
    batch: tuple[BatchOutcome, ...] | None
    with ExitStack() as kept:
        if platform.scope.is_controlled:
            controlled = run_controlled(loaded, platform, models, kind, steps=steps, seconds=seconds)
            runs, scaling, batch = controlled.runs, controlled.scaling, controlled.batch
            controllers = controlled.controllers
            parts = (*parts, *controlled.parts)
        else:
            send = partial(replay, loaded, models, kind, steps=steps, seconds=seconds)
            runs, scaled, further = _follow_load(platform, kind, steps, send, kept)
            parts = (*parts, *further)
        callers = run_callers(
            loaded.blueprint,
            models,
            run_directory,
            engines=kind,
            steps=steps,
            seconds=seconds,
            door=platform.door_of_jobs,
        )
        parts = (*parts, *callers.parts)
        front_door = platform.run_front_door(steps)
        if not platform.scope.is_controlled:  # its job ran beside the load
            batch = platform.run_batch_jobs(steps)
            scaling = scaled()
    for line in platform.shifted():
        steps.say(line)
    # Where workers follow the replay, they went and came.
    if not platform.scope.is_elastic or kind.elastic_load == "clients":
        losses = platform.kill_workers(steps, replace=replaced)
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
        front_door=front_door,
    )
    return report, parts


def _follow_load(
    platform: LocalPlatform,
    engines: EngineKind,
    steps: Steps,
    send: Callable[..., list[ModelRun]],
    kept: ExitStack,
) -> tuple[list[ModelRun], Callable[[], ScalingOutcome | None], tuple[PlatformPart, ...]]:
    """Replay, and let elastic workers follow the load: what came, how they did, and rows of the parts.

    kept: Ends what goes on after the replay: workers of batch come and go until its jobs have ended.
    """
    if not platform.scope.is_elastic:
        return send(), lambda: None, ()
    if engines.elastic_load == "replay":
        elastic, parts = platform.follow_load(steps)
        with ExitStack() as stack:
            (kept if platform.scope.lends else stack).enter_context(elastic)
            runs = send(follows_ramp=True)
        return runs, partial(elastic.outcome, runs), parts
    from inference_local.scaling.coming_clients import ComingClients

    runs = send()
    elastic, parts = platform.follow_load(steps)
    with steps.step(CLIENTS) as step:
        clients = ComingClients(elastic, engines.answer_seconds, lambda what: step.update(detail=what))
        with elastic:
            outcomes = clients.run()
        outcome = elastic.outcome_of(outcomes, clients.maximum)
        step.result = (
            f"{outcome.workers_min} to {outcome.workers_max} workers, "
            f"{outcome.lost} of {amount(outcome.requests, 'request')} lost"
        )
    return runs, lambda: outcome, parts


def replay_again(
    loaded: LoadedBlueprint,
    state: RunState,
    run_directory: Path,
    *,
    seconds: float | None,
    console: Console,
    full: bool = False,
) -> Report:
    """Replay the trace against a running platform, and replace its report.

    loaded: The blueprint, which states the workloads.
    state: The running platform.
    seconds: How long requests arrive. None for the default.
    console: Where progress and report are shown.
    full: Whether to print the whole report in place of ten lines.
    """
    from inference_local.measured_run import replay, write_report

    kind = ENGINE_KINDS[state.engines](loaded.blueprint)
    runs = replay(loaded, state.models, kind, steps=Steps(console, [REPLAY]), seconds=seconds)
    report = write_report(
        loaded,
        runs,
        state.parts,
        run_directory,
        engines=kind,
        replacements=state.replacements,
    )
    _show(report, run_directory, console, full=full)
    return report


def _show(
    report: Report,
    run_directory: Path,
    console: Console,
    *,
    full: bool,
    further: Sequence[tuple[str, str]] = (),
) -> None:
    if full:
        print_report(report, console)
    console.print()
    print_summary(report, run_directory / "report.html", console, further)


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
