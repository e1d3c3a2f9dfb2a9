"""The ways through the front door: public names, and the platform's own queues, streaming jobs and canary.

Each of the latter has a model of its own at the door, which leads to the deployments that answer it, and keys
that name this model. So its requests are charged as those of all others, and it keeps its deployments and its
priority.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from inference_blueprints.serving.traffic import (
    lent_addresses,
    own_deployments,
    queue_traffic,
    serving_deployments,
)
from inference_blueprints.spec.derived import behind_the_door, queue_rates
from inference_blueprints.spec.types import FrontDoorModel, FrontDoorTarget, Model, Rates, Spec
from inference_contracts.platform_keys import PLATFORM_TEAM, KeyOwner, PlatformCaller, way_model
from inference_contracts.records import dataclass

#: Priority of the requests of each caller while there is no room for all.
_PRIORITIES: Final[dict[PlatformCaller, int]] = {"batch": 0, "streaming": 50, "canary": 100}


@dataclass(frozen=True, slots=True)
class DoorWay:
    """A model at the front door that one part of the platform has for itself."""

    caller: PlatformCaller
    owner: str
    """`caller`, `owner`: Who asks: batch, the canary, or the streaming job of this name. All ways of the same
    owner have the same keys."""
    door_model: str
    """Name of the model in requests."""
    model: Model
    deployments: tuple[str, ...]
    """`model`, `deployments`: What answers."""
    teams: tuple[str, ...]
    """Teams that pay, each with a key of its own."""
    rates: Rates | None
    """What they pay."""
    longest_output: int
    """Longest answer as the file states it, in tokens. 0 if it does not."""

    @property
    def priority(self) -> int:
        """Priority of its requests."""
        return _PRIORITIES[self.caller]


def public_models(spec: Spec) -> Sequence[FrontDoorModel]:
    """Return the models under public names: those of the file, else each model under its own name."""
    stated = spec.front_door.models if spec.front_door else []
    return stated or [
        FrontDoorModel(name=model.name, to=[FrontDoorTarget(model=model.name)])
        for model in spec.models
        if model.name in behind_the_door(spec)
    ]


def door_ways(spec: Spec) -> Sequence[DoorWay]:
    """Return the platform's own ways through the front door. Without a door, there are none."""
    if spec.front_door is None:
        return ()
    return (*_of_batch(spec), *_of_streaming(spec), *_of_the_canary(spec))


def key_owners(spec: Spec) -> Sequence[KeyOwner]:
    """Return who has keys of the platform."""
    found: dict[tuple[PlatformCaller, str], KeyOwner] = {}
    for way in door_ways(spec):
        before = found.get((way.caller, way.owner))
        models = (*(before.models if before else ()), way.door_model)
        found[way.caller, way.owner] = KeyOwner(way.caller, way.owner, way.teams, models)
    return tuple(found.values())


def one_way_deployments(spec: Spec) -> frozenset[tuple[str, str]]:
    """Return the deployments, each with its model, that answer one way alone: it limits itself.

    Neither a public name leads to them, nor another queue or job. The canary's few questions do not count.
    """
    ways = [way for way in door_ways(spec) if way.caller != "canary"]
    used = [(way.model.name, name) for way in ways for name in way.deployments]
    public = set(_behind_public_names(spec))
    return frozenset(each for each in used if used.count(each) == 1 and each not in public)


def _of_batch(spec: Spec) -> Iterator[DoorWay]:
    """Yield the ways of batch. The queues of a model have the same deployments and prices."""
    teams = tuple(team.name for team in spec.teams)
    queues = spec.batch.queues if spec.batch else []
    for name in dict.fromkeys(queue.model for queue in queues):
        model = _model(spec, name)
        own = [queue for queue in queues if queue.model == name]
        queue, lent = own[0], [*lent_addresses(spec, own[0]).values()]
        staying = tuple(each for each in serving_deployments(spec, queue) if each not in lent)
        parts = {way_model("batch", name): staying}
        parts |= {way_model("batch", name, each): (each,) for each in lent}
        stated = [queue_traffic(spec, model, each).means.longest_output_tokens for each in own]
        longest = max(each or 0 for each in stated) if all(stated) else 0
        for door_model, deployments in parts.items():
            yield DoorWay(
                "batch", "", door_model, model, deployments, teams, queue_rates(spec, queue), longest
            )


def _of_streaming(spec: Spec) -> Iterator[DoorWay]:
    for job in spec.streaming:
        yield DoorWay(
            caller="streaming",
            owner=job.name,
            door_model=way_model("streaming", job.name),
            model=(model := _model(spec, job.model)),
            deployments=serving_deployments(spec, job),
            teams=(job.team,),
            rates=model.rates,
            longest_output=job.answer.max_tokens,
        )


def _of_the_canary(spec: Spec) -> Iterator[DoorWay]:
    if spec.observability is None or spec.observability.canary is None:
        return
    for model in spec.models:
        # Batch waits while it has no workers, and nobody else asks the model.
        if not model.may_have_no_worker:
            door_model, deployments = way_model("canary", model.name), own_deployments(spec, model)
            yield DoorWay("canary", "", door_model, model, deployments, (PLATFORM_TEAM,), model.rates, 0)


def _behind_public_names(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield the deployments behind public names, each with its model."""
    for public in public_models(spec):
        for target in public.to:
            every = own_deployments(spec, _model(spec, target.model))
            names = (target.deployment,) if target.deployment else every
            yield from ((target.model, name) for name in names)


def _model(spec: Spec, name: str) -> Model:
    return next(model for model in spec.models if model.name == name)
