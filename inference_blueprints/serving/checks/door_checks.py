"""Checks of the front door against the plan: contexts, sizes, and what one slot of the store can count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from inference_blueprints.serving.front_door.door_plan import budget_scope
from inference_blueprints.serving.front_door.sizing import (
    BUSY_SHARE,
    DoorSize,
    door_size,
    door_store_use,
    ways_through_the_door,
)
from inference_blueprints.serving.front_door.ways import public_models
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import FrontDoor, FrontDoorBudget, Spec
from inference_blueprints.spec.wording import Path, quote
from inference_catalog.door_loads import door_load, door_store_load
from inference_contracts.batch_limits import BYTES_PER_TOKEN
from inference_contracts.door_configuration import NANO, DoorModel
from inference_contracts.errors import Finding
from inference_contracts.number_text import number
from inference_contracts.units import MICROSECONDS_PER_SECOND

_DOOR: Path = ("spec", "frontDoor")
_BUDGETS: Path = (*_DOOR, "budgets")


def door_findings(spec: Spec, plan: ServingPlan) -> Iterator[Finding]:
    """Check the front door against the serving plan.

    spec: The platform, without errors so far.
    """
    if spec.front_door is None or plan.front_door is None:
        return
    size = door_size(spec, plan.front_door.configuration.models)
    # Those of the platform's own parts are as its queues and jobs are, which have checks of their own.
    models = plan.front_door.configuration.public_models
    yield from _contexts(spec, plan, models)
    yield from _replicas(size)
    yield from _slot_of_a_team(spec, size)
    yield from _slots_of_models(spec, spec.front_door)
    yield from _small_budgets(spec, spec.front_door, models)


def _contexts(spec: Spec, plan: ServingPlan, models: tuple[DoorModel, ...]) -> Iterator[Finding]:
    """Warn of targets whose workers accept shorter requests than others of their public model."""
    accepted = {
        each.release: min((p.engine.max_model_len for p in each.workers if p.engine), default=0)
        for model in plan.models
        for each in model.deployments
    }
    are_stated = bool(spec.front_door and spec.front_door.models)
    for index, model in enumerate(models):
        lengths = {target.cluster: accepted[target.cluster] for target in model.targets}
        shortest, longest = min(lengths, key=lambda each: lengths[each]), max(lengths.values())
        if lengths[shortest] < longest:
            message = (
                f"{quote(shortest)} accepts requests of at most {lengths[shortest]:,} tokens, and another "
                f"target {longest:,}: whether {quote(model.name)} answers a longer request depends on its "
                "target; state the same 'max' of inputTokens and outputTokens for both"
            )
            path = (*_DOOR, "models", index, "to") if are_stated else _DOOR
            yield Finding(path, message, "warning")


def _replicas(size: DoorSize) -> Iterator[Finding]:
    """Warn of fewer replicas than the stated peaks need."""
    load = door_load()
    if size.needed_vcpus > size.replicas * size.vcpus:
        message = (
            f"got {size.replicas} with {size.vcpus} vCPUs each, but per second "
            f"{number(size.requests_per_second)} requests x {load.microseconds_per_request:g} us and "
            f"{number(size.chunks_per_second)} chunks x {load.microseconds_per_chunk:g} us keep "
            f"{size.busy_vcpus:.1f} vCPUs busy, and {1 - BUSY_SHARE:.0%} of all should be free; set "
            f"{-(-size.needed_vcpus // size.vcpus):.0f}, or remove it"
        )
        yield Finding((*_DOOR, "replicas"), message, "warning")


def _slot_of_a_team(spec: Spec, size: DoorSize) -> Iterator[Finding]:
    """Check that the store can reserve the requests of a team, whose counters are all in one slot."""
    use = door_store_use(size, spec)
    most, teams, peak = use.reserved_requests_per_slot, use.teams_that_reserve, size.requests_per_second
    if teams and peak > most * teams:
        message = (
            f"got a peak of {number(peak)} requests per second of {teams} "
            f"{'team' if teams == 1 else 'teams'} whose budgets are enforced before each request, but all "
            f"counters of a team are in one slot of the store, and {_slot_arithmetic()}; give each team a "
            "budget with 'enforce: after', which counts sums of requests afterwards, or divide the callers "
            "among more teams"
        )
        yield Finding(_BUDGETS, message)
    elif teams and peak > most:
        message = (
            f"one team may make at most {number(most)} of the {number(peak)} requests per second at the "
            f"peak: all its counters are in one slot of the store, and {_slot_arithmetic()}; divide the "
            "callers of a larger team, or give it a budget with 'enforce: after'"
        )
        yield Finding(_BUDGETS, message, "warning")


def _slots_of_models(spec: Spec, door: FrontDoor) -> Iterator[Finding]:
    """Check that the store can reserve the requests of a model that has a budget."""
    rates: dict[str, float] = defaultdict(float)
    for model, way in ways_through_the_door(spec):
        # Queues and jobs have models of their own at the door.
        if way.kind == "realTime":
            rates[model.name] += way.means.peak_requests_per_second
    targets = {each.name: {target.model for target in each.to} for each in public_models(spec)}
    most = door_store_load().reserved_requests_per_slot
    for index, budget in enumerate(door.budgets):
        rate = sum(rates[name] for name in targets.get(budget.model or "", ()))
        if rate > most and budget.enforce == "before":
            message = (
                f"got {quote(budget.model)} with {number(rate)} requests per second at the peak, but the "
                f"counter of a model is in one slot of the store, and {_slot_arithmetic()}; set 'enforce: "
                "after'"
            )
            yield Finding((*_BUDGETS, index, "model"), message)


def _slot_arithmetic() -> str:
    """Return how many requests one slot reserves and settles, as a clause."""
    load = door_store_load()
    scripts = load.microseconds_per_reservation + load.microseconds_per_settlement
    return (
        f"a slot reserves and settles about {number(load.reserved_requests_per_slot)} requests per second "
        f"(at most {load.units_per_slot_per_second:,} units (ECPU) on AWS, about "
        f"{load.units_per_reserved_request:.0f} per request by estimate; and {scripts:g} us of its one "
        f"processor per request, so {number(MICROSECONDS_PER_SECOND / scripts)} at most, measured "
        f"{load.date})"
    )


def _small_budgets(spec: Spec, door: FrontDoor, models: tuple[DoorModel, ...]) -> Iterator[Finding]:
    """Warn of limits that no request of mean length fits, so that all are refused."""
    reservations = _reservations(spec, models)
    for index, budget in enumerate(door.budgets):
        scope, name = budget_scope(budget)
        found = [reservations[name]] if scope == "model" else list(reservations.values())
        if not found or budget.enforce == "after":
            continue
        least = {
            "usdPerDay": min(usd for usd, _ in found),
            "tokensPerMinute": min(count for _, count in found),
        }
        for key, limit in _limits(budget).items():
            if limit is not None and limit < least[key]:
                message = (
                    f"got {limit:.10g}, but a request of mean length reserves {number(least[key], 4)} (each "
                    "byte of its prompt, and 'defaultOutputTokens' or the context for its answer), so each "
                    "one that states no smaller maximum is refused; raise it"
                )
                yield Finding((*_BUDGETS, index, key), message, "warning")


def _limits(budget: FrontDoorBudget) -> Mapping[str, float | None]:
    return {"usdPerDay": budget.usd_per_day, "tokensPerMinute": budget.tokens_per_minute}


def _reservations(spec: Spec, models: tuple[DoorModel, ...]) -> Mapping[str, tuple[float, int]]:
    """Return what a request of mean length reserves, in US dollars and in tokens, by public name."""
    inputs = {
        model.name: way.means.input_tokens
        for model, way in ways_through_the_door(spec)
        if way.kind == "realTime"
    }
    tasks = {model.name: model.task for model in spec.models}
    found = {}
    for model in models:
        if model.prices.image:
            found[model.name] = (model.prices.image / NANO, 0)
            continue
        # A byte counts as a token until the answer says how many there were.
        mean = min(inputs.get(each.served_model, 0) for each in model.targets)
        prompt = min(BYTES_PER_TOKEN * mean, model.context_length)
        writes = tasks[model.targets[0].served_model] == "generate"
        # As `bound_of` of the policy does.
        fits = prompt + model.default_output_tokens <= model.context_length
        answer = (model.default_output_tokens if fits else model.context_length) if writes else 0
        nano = prompt * model.prices.input_token + answer * model.prices.output_token
        found[model.name] = (nano / NANO, prompt + answer)
    return found
