"""How large the front door is: from what a request and a chunk cost, and the stated peaks of the models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from inference_blueprints.serving.front_door.ways import door_ways
from inference_blueprints.serving.traffic import WayIn, model_traffic
from inference_blueprints.spec.derived import behind_the_door
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import Model, Spec
from inference_catalog.door_loads import door_load, door_store_load
from inference_contracts.batch_limits import BYTES_PER_TOKEN
from inference_contracts.door_configuration import DoorModel
from inference_contracts.records import dataclass
from inference_contracts.units import MIB_PER_GIB, SECONDS_PER_MINUTE

#: Half of each processor is free at the peak: for bursts, and for the load of a replica that is lost.
BUSY_SHARE = 0.5
#: A replica may be lost, and one is replaced at a time.
LEAST_REPLICAS = 2
#: vCPUs of a replica, the smallest that needs no more than so many replicas. The policy process has one
#: thread, which is busy for a fifth of the time of a request: more than four would leave the others idle.
_VCPUS = (1, 2, 4)
_REPLICAS_OF_A_SIZE = 4
#: As AWS Fargate has it for each vCPU, at least (https://docs.aws.amazon.com/AmazonECS/latest/developerguide/
#: task-cpu-memory-error.html), so that a pod and a task have the same.
_MEMORY_MIB_PER_VCPU = 2048
#: Bodies of the largest size that a replica holds at once.
_LARGEST_BODIES = 8
#: Seconds that a request is open if nothing says how many its workers answer at once: an assumption.
_OPEN_SECONDS = 60.0
#: A prompt of so many tokens passes in any case, also with text that JSON spells in three bytes for one.
_LEAST_TOKENS = 100_000
_JSON_FACTOR = 3
#: Bytes of an image in a request: three per pixel as in a PNG without compression, in base64; a photograph
#: that the model scales down may be larger.
_BYTES_PER_PIXEL = 4
_LEAST_IMAGE_MIB = 8
_MOST_BODY_MIB = 64
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class DoorSize:
    """Size of the front door at the peak of all its models together."""

    requests_per_second: float
    chunks_per_second: float
    """`requests_per_second`, `chunks_per_second`: Requests, and chunks if each answer in real time streams
    and each token is a chunk: the most that there can be."""
    busy_vcpus: float
    """Processors that they keep busy, of all replicas together."""
    needed_vcpus: float
    """Processors with half of them free."""
    replicas: int
    vcpus: int
    memory_mib: int
    """`replicas`, `vcpus`, `memory_mib`: Number of replicas, and processors and memory of each."""
    open_requests: int
    """Requests that are open at once, of all replicas together."""
    largest_body_bytes: int
    """Largest body of a request."""


def door_size(spec: Spec, models: Sequence[DoorModel]) -> DoorSize:
    """Return the size of the front door; the number of replicas of the file counts first.

    models: The models under their public names.
    """
    passing = [*ways_through_the_door(spec)]
    ways = [way for _, way in passing]
    requests = sum(way.means.peak_requests_per_second for way in ways) + canary_requests_per_second(spec)
    # Neither batch nor streaming jobs ask for streams.
    chunks = sum(
        way.means.peak_requests_per_second * (way.means.output_tokens if way.kind == "realTime" else 1)
        for way in ways
    )
    load = door_load()
    busy = load.busy_vcpus(requests, chunks)
    needed = busy / BUSY_SHARE
    stated = spec.front_door.replicas if spec.front_door else None
    vcpus = next((each for each in _VCPUS if needed <= each * (stated or _REPLICAS_OF_A_SIZE)), _VCPUS[-1])
    replicas = stated or max(LEAST_REPLICAS, math.ceil(needed / vcpus))
    open_requests = math.ceil(_open_requests(passing, models))
    body_mib = _largest_body_mib(_models(spec), models)
    wanted = (
        load.memory_mib
        + math.ceil(open_requests / replicas * load.kib_per_stream / 1024)
        + _LARGEST_BODIES * body_mib
    )
    return DoorSize(
        requests_per_second=requests,
        chunks_per_second=chunks,
        busy_vcpus=busy,
        needed_vcpus=needed,
        replicas=replicas,
        vcpus=vcpus,
        memory_mib=max(_MEMORY_MIB_PER_VCPU * vcpus, math.ceil(wanted / MIB_PER_GIB) * MIB_PER_GIB),
        open_requests=open_requests,
        largest_body_bytes=body_mib * _MIB,
    )


def ways_through_the_door(spec: Spec) -> Iterator[tuple[Model, WayIn]]:
    """Yield the requests that pass through the front door, with their model.

    These are all requests in real time of models with a public name, and those of all queues and streaming
    jobs. What has neither lengths nor deployments of its own is a part of the model's workload.
    """
    if spec.front_door is None:
        return
    behind = behind_the_door(spec)
    for _, model in usable(spec.models):
        for way in model_traffic(spec, model).ways:
            if way.kind != "realTime" or model.name in behind:
                yield model, way


def canary_requests_per_second(spec: Spec) -> float:
    """Return the questions of the canary, which has a short one for each model."""
    canary = spec.observability.canary if spec.observability else None
    asked = sum(1 for way in door_ways(spec) if way.caller == "canary")
    return asked / (canary.every_minutes * SECONDS_PER_MINUTE) if canary else 0.0


def _models(spec: Spec) -> list[Model]:
    names = {*behind_the_door(spec), *(way.model.name for way in door_ways(spec))}
    return [model for _, model in usable(spec.models) if model.name in names]


def _open_requests(passing: Iterable[tuple[Model, WayIn]], models: Sequence[DoorModel]) -> float:
    """Return the requests that are open at once: as many as the workers answer, else by their rate."""
    known = {target.cluster: target.requests_at_once for model in models for target in model.targets}
    rate = sum(
        way.means.peak_requests_per_second
        for model, way in passing
        if any(known.get(f"{model.name}-{name}", 0) is None for name in way.deployments)
    )
    return sum(each for each in known.values() if each) + rate * _OPEN_SECONDS


def _largest_body_mib(behind: Sequence[Model], models: Sequence[DoorModel]) -> int:
    """Return the size of the largest request that any model takes, in MiB."""
    tokens = max([_LEAST_TOKENS, *(model.context_length for model in models)])
    text = math.ceil(tokens * BYTES_PER_TOKEN * _JSON_FACTOR / _MIB)
    images = max((_images_mib(model) for model in behind), default=0)
    return min(_MOST_BODY_MIB, text + images)


def _images_mib(model: Model) -> int:
    """Return the size of the images of a prompt, in MiB."""
    media, entry = model.media, model.weights.entry
    vision = entry.vision if entry else None
    if media is None or vision is None:
        return 0
    pixels = media.tokens_per_image * vision.pixels_per_token
    return media.images_per_request * max(_LEAST_IMAGE_MIB, math.ceil(pixels * _BYTES_PER_PIXEL / _MIB))


@dataclass(frozen=True, slots=True)
class DoorStoreUse:
    """What the door demands of the store of budgets at the peak."""

    reserved_requests_per_second: float
    """Requests that are reserved before, and settled after."""
    units_per_second: float
    """Units (ECPU) of all slots together: an estimate, since AWS does not publish how scripts are counted."""
    reserved_requests_per_slot: float
    """Requests per second of one team that can be reserved: all its counters are in one slot of the store."""
    teams_that_reserve: int
    """Teams whose requests are reserved before."""


def door_store_use(size: DoorSize, spec: Spec) -> DoorStoreUse:
    """Return what the door demands of its store.

    The file does not say how many requests each team makes: if some teams reserve, all requests may be
    theirs.
    """
    load = door_store_load()
    after = {
        each.team for each in (spec.front_door.budgets if spec.front_door else []) if each.enforce == "after"
    }
    reserving = [team.name for team in spec.teams if team.name not in after]
    reserved = size.requests_per_second if reserving else 0.0
    # Without a reservation, a replica adds up the costs of a team before it writes.
    sums = 0 if reserving else size.replicas * load.writes_per_second_of_sums * len(spec.teams)
    return DoorStoreUse(
        reserved_requests_per_second=reserved,
        units_per_second=reserved * load.units_per_reserved_request
        + sums * load.units(load.microseconds_per_settlement),
        reserved_requests_per_slot=load.reserved_requests_per_slot,
        teams_that_reserve=len(reserving),
    )
