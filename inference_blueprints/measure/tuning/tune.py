"""Finds the cheapest configuration of a model that meets its latency objectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Protocol

from inference_blueprints.measure.simulation.offline_replay import MissingProfileError
from inference_blueprints.measure.simulation.simulated_workers import simulated_workers
from inference_blueprints.measure.tuning.accelerator_comparison import ComparedInstance, compare_instances
from inference_blueprints.measure.tuning.candidates import (
    Costing,
    TuningCandidate,
    WorkerShape,
    engines,
    shapes,
)
from inference_blueprints.measure.tuning.coverage import (
    doubts,
    list_missing_profiles,
    narrow_margins,
    sources,
    unsuited_arguments,
    what_is_not_covered,
)
from inference_blueprints.measure.tuning.evaluation import Evaluation, Evaluator, ReplayCache
from inference_blueprints.measure.tuning.profiles import Profiles, Speed
from inference_blueprints.measure.tuning.replayed_workload import (
    Demand,
    StatedWorkload,
    answer_seconds,
    long_enough,
    recorded_workload,
    router_of,
)
from inference_blueprints.measure.tuning.search import Bounded, Search, workers_needed
from inference_blueprints.measure.tuning.traces import BLOCK_TOKENS, UserTrace, read_trace
from inference_blueprints.report.plan.section import RecordedReplay
from inference_blueprints.report.plan.sections.objectives import replayed_content
from inference_blueprints.report.plan.sections.pools import PRICES
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.report.pricing.rates import CustomRates, prices_for
from inference_blueprints.serving.performance import ProfileFinder, uncovered
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec.types import Blueprint, LatencyKind, Objective
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass


class SearchProgress(Protocol):
    """Receives the progress of a search."""

    def say(self, line: str) -> None:
        """Show a line that stays."""

    def shapes(self, total: int) -> None:
        """Set the number of shapes to search."""

    def replaying(self, candidate: TuningCandidate) -> None:
        """Show the configuration that is being replayed."""

    def looked_at(self, shape: WorkerShape) -> None:
        """Count a shape as searched."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a search found; every latency and price per token is simulated."""

    blueprint: Blueprint
    """The blueprint that was tuned."""
    model_index: int
    """Index of the tuned model in ``spec.models``."""
    demand: Demand
    """The replayed requests."""
    objectives: tuple[Objective, ...]
    """The latency objectives, or the defaults of the checks where the blueprint states none."""
    trace: str
    """Name of the trace; empty for the `workload` section."""
    evaluations: tuple[Evaluation, ...]
    """Every replayed configuration: first those that meet the objectives, then by cost."""
    covered: int
    """Number of shapes with latency profiles that cover the requests. Nothing was replayed if it is 0."""
    shapes: int
    """Number of covered shapes that could serve."""
    left_out: int
    """How many of them needed no replay."""
    replays: int
    """Number of replays that were run."""
    from_cache: int
    """Number of results that came from the cache."""
    notes: tuple[str, ...]
    """Assumptions, and what the data does not cover."""
    others: tuple[ComparedInstance, ...]
    """The model's price on other kinds of instances, where a speed is known."""
    refused: str = ""
    """Why `blueprints validate` refuses every configuration; empty if it does not."""

    @property
    def best(self) -> Evaluation | None:
        """The cheapest configuration that meets the objectives. None if there is no such configuration."""
        return next((each for each in self.evaluations if each.keeps), None)

    @property
    def tokens_per_second(self) -> float:
        """Prompt and answer tokens per second at the replayed load."""
        means = self.demand.means
        return means.peak_requests_per_second * (means.input_tokens + means.output_tokens)

    def usd_per_million_tokens(self, evaluation: Evaluation) -> float | None:
        """Return USD per million prompt and answer tokens. None if a price is unknown."""
        return evaluation.cost.usd_per_million_tokens(self.tokens_per_second)


@dataclass(frozen=True, slots=True)
class Stores:
    """Where speeds and replays are kept between searches."""

    profiles: Profiles
    replays: ReplayCache
    """`profiles`, `replays`: In the user's cache folder, unless others are given."""


def tune(
    blueprint: Blueprint,
    model_index: int,
    progress: SearchProgress,
    *,
    trace: Path | None = None,
    max_accelerators: int | None = None,
    engines_looked_at: Sequence[str] = (),
    rates: CustomRates | None = None,
    stores: Stores | None = None,
) -> Tuning:
    """Search engine, topology, pools, tensor parallel sizes and numbers of workers.

    blueprint, model_index: The model; its pools are those of the blueprint.
    progress: Told how far the search is.
    trace: Requests to replay in place of the `workload` section.
    max_accelerators: The most that a configuration may have.
    engines_looked_at: Engine names as in the blueprint. If empty: all engines, or the model's engine if it
        has arguments.
    rates: The user's own prices.
    stores: Where speeds and replays are kept.
    Raises UserError if the trace cannot be used, or an engine argument contradicts the data.
    """
    arguments = unsuited_arguments(blueprint, model_index)
    if arguments:
        raise UserError("\n".join(arguments))
    stores = stores or Stores(Profiles(), ReplayCache())
    recorded = read_trace(trace) if trace else None
    costing = Costing(
        blueprint, model_index, prices_for(blueprint.spec.environment.region, rates), max_accelerators
    )
    possible = possible_shapes(costing, engines_looked_at or engines(blueprint, model_index))
    speeds = {shape: _speeds(blueprint, model_index, shape) for shape in possible}
    missing = stores.profiles.record([each for found in speeds.values() for each in found], progress.say)
    covered = [shape for shape in possible if not missing.keys() & set(speeds[shape])]
    if recorded is not None and covered:
        accepted = {shape: _longest_request(blueprint, model_index, shape) for shape in covered}
        recorded = recorded.within(max(accepted.values()))
        longest = max(request.tokens for request in recorded.requests)
        covered = [shape for shape in covered if accepted[shape] >= longest]
    demand = demand_of(blueprint, model_index, recorded)
    beyond = {
        speed: reason
        for shape in covered
        for speed, reason in _beyond(blueprint, model_index, shape, demand, stores.profiles.find)
    }
    covered = [shape for shape in covered if not beyond.keys() & set(speeds[shape])]
    evaluator = Evaluator(costing, demand, stores.profiles.find, stores.replays, progress.replaying)
    bounded = bounded_shapes(evaluator, covered)
    progress.shapes(len(bounded))
    left_out = 0
    for _, alike in groupby(bounded, key=lambda each: (each.shape.engine, each.shape.topology)):
        search = Search(evaluator, progress.looked_at)
        search.run(list(alike))
        left_out += len(search.left_out)
    return Tuning(
        blueprint=blueprint,
        model_index=model_index,
        demand=demand,
        objectives=evaluator.objectives,
        trace=recorded.name if recorded else "",
        evaluations=evaluator.evaluations,
        covered=len(covered),
        shapes=len(bounded),
        left_out=left_out,
        replays=evaluator.replays,
        from_cache=evaluator.from_cache,
        notes=(
            *(_notes(evaluator, recorded) if covered else ()),
            *list_missing_profiles(missing),
            *(f"not compared: {speed}: {reason}" for speed, reason in sorted(beyond.items())),
        ),
        others=compare_instances(blueprint, model_index, costing.prices, find=stores.profiles.find),
        refused="" if possible else why_refused(costing),
    )


def demand_of(blueprint: Blueprint, model_index: int, trace: UserTrace | None) -> Demand:
    """Return the requests to replay: the busiest part of the trace, or the `workload` section at its peak.

    trace: The user's trace. None for the `workload` section.
    """
    model = blueprint.spec.models[model_index]
    if trace is None:
        means = model_traffic(blueprint.spec, model).means
        return StatedWorkload(means, answer_seconds(model, means))
    return recorded_workload(long_enough(trace.requests, model), BLOCK_TOKENS)


def possible_shapes(costing: Costing, engines_looked_at: Sequence[str]) -> list[WorkerShape]:
    """Return the shapes that fit with one worker per role; aggregated ones come first for each engine.

    costing: The model and its pools.
    """
    every = shapes(costing.blueprint, engines_looked_at)
    return [shape for shape in every if costing.has_room(TuningCandidate(shape, (1,) * len(shape.roles)))]


def why_refused(costing: Costing) -> str:
    """Return the first reason for which the model's own engine has no possible shape, or nothing.

    costing: The model and its pools.
    """
    engine = costing.blueprint.spec.models[costing.model_index].engine.chosen
    for shape in shapes(costing.blueprint, [engine]):
        found = costing.refusals(TuningCandidate(shape, (1,) * len(shape.roles)))
        if found:
            return f"{'.'.join(map(str, found[0].path))}: {found[0].message}"
    return ""


def bounded_shapes(evaluator: Evaluator, covered: Sequence[WorkerShape]) -> list[Bounded]:
    """Return the shapes that can meet the objectives by estimate, with their smallest number of workers.

    evaluator: Holds the requests and the objectives.
    covered: Shapes that have latency profiles.
    """
    demand, objectives = evaluator.demand, evaluator.objectives
    found = []
    for shape in covered:
        one = TuningCandidate(shape, (1,) * len(shape.roles))
        needs = [workers_needed(workers, demand, objectives) for workers in evaluator.workers(one)]
        known = tuple(need for need in needs if need is not None)
        if len(known) == len(needs):
            found.append(Bounded(shape, known))
    return found


def _notes(evaluator: Evaluator, trace: UserTrace | None) -> Iterator[str]:
    """Yield assumptions about the best configuration, and what its figures do not cover."""
    costing, demand = evaluator.costing, evaluator.demand
    blueprint, index = costing.blueprint, costing.model_index
    choice = next((each for each in evaluator.evaluations if each.keeps), None)
    if choice is not None:
        best = choice.candidate
        yield from narrow_margins(choice)
        yield from doubts(blueprint, best, index)
        yield from sources([each.profile for each in evaluator.workers(best) if each.profile])
    yield from what_is_not_covered(blueprint, index, demand, trace)
    if costing.unpriced_pools:
        yield (
            f"No price is known for {', '.join(costing.unpriced_pools)} with its purchase option: "
            "configurations are ranked by their number of accelerators. Give your own prices with --rates."
        )
    else:
        plan = build_plan(blueprint)
        yield summarise(blueprint, plan, costing.prices.rates)[PRICES].note


def _longest_request(blueprint: Blueprint, model_index: int, shape: WorkerShape) -> int:
    """Return the longest request, in tokens, that a shape's workers accept."""
    one = TuningCandidate(shape, (1,) * len(shape.roles)).within(blueprint, model_index)
    workers = build_plan(one).models[model_index].deployments[0].workers
    return min(each.engine.max_model_len for each in workers if each.engine)


def _beyond(
    blueprint: Blueprint, model_index: int, shape: WorkerShape, demand: Demand, find: ProfileFinder
) -> Iterator[tuple[Speed, str]]:
    """Yield the latency profiles of a shape that end before a request, and where."""
    one = TuningCandidate(shape, (1,) * len(shape.roles)).within(blueprint, model_index)
    for each, speed in zip(resolve(one, model_index, 0), _speeds(blueprint, model_index, shape), strict=True):
        profile = find(speed.model, speed.accelerator, speed.tensor_parallel_size, speed.engine)
        if profile is None:
            continue
        reason = uncovered(profile, each.traffic.means, each.role) or uncovered(
            profile, demand.longest, each.role, "the longest"
        )
        if reason:
            yield speed, reason


def _speeds(blueprint: Blueprint, model_index: int, shape: WorkerShape) -> list[Speed]:
    """Return the latency profiles that a shape's replays need."""
    one = TuningCandidate(shape, (1,) * len(shape.roles)).within(blueprint, model_index)
    return [
        Speed(each.device_shape.name, each.accelerator.name, each.tensor_parallel_size, shape.engine)
        for each in resolve(one, model_index, 0)
    ]


def replay_as_written(
    blueprint: Blueprint, model_index: int, *, day: str, trace: Path | None = None
) -> dict[str, RecordedReplay]:
    """Replay the deployments of a model as its blueprint is written, with the largest number of workers.

    Each deployment is replayed by itself, with its own part of the requests: its router knows no others.

    day: Date of the record, such as ``2026-11-29``.
    trace: Requests to replay in place of the `workload` section.
    Returns: The slowest replay for each percentile, by the name of the deployment. Those that only answer
        queues are left out: nobody waits for them.
    Raises UserError if nobody waits for any, a trace is given for several, or one has no latency profile.
    """
    model = blueprint.spec.models[model_index]
    path = f"spec.models[{model_index}]"
    arguments = unsuited_arguments(blueprint, model_index)
    if arguments:
        raise UserError("\n".join(arguments))
    deployments = {
        index: roles
        for index in range(len(model.deployments))
        if (roles := resolve(blueprint, model_index, index))[0].traffic.is_waited_for
    }
    if not deployments:
        raise UserError(
            f"{path}: answers queues only, and nobody waits for these, so there is no objective to replay; "
            "`blueprints plan` says whether their deadlines hold"
        )
    if trace and len(deployments) > 1:
        raise UserError(
            f"--trace: got one trace for {len(deployments)} deployments of {model.name}, each with its own "
            "router; leave it out, and each gets its part of the stated requests"
        )
    recorded = read_trace(trace) if trace else None
    planned = build_plan(blueprint).models[model_index].deployments
    replays = {}
    for index, roles in deployments.items():
        processes = planned[index].workers
        if recorded is not None:
            recorded = recorded.within(min(each.engine.max_model_len for each in processes if each.engine))
            demand = demand_of(blueprint, model_index, recorded)
        else:
            means = roles[0].traffic.means
            demand = StatedWorkload(means, answer_seconds(model, means))
        workers = simulated_workers(roles, processes)
        try:
            results = [demand.replay(workers, router_of(model), series) for series in demand.series]
        except MissingProfileError as error:
            raise UserError(
                f"{path}.deployments[{index}]: cannot be replayed: {error}; "
                "`blueprints tune` records profiles"
            ) from error
        latencies: dict[LatencyKind, dict[float, float]] = {
            kind: {
                percentile: max(each.latencies[kind].known[percentile] for each in results)
                for percentile in latency.known
            }
            for kind, latency in results[0].latencies.items()
        }
        replays[model.deployments[index].name] = RecordedReplay(
            replayed_content(blueprint, model), day, recorded.name if recorded else "workload", latencies
        )
    return replays
