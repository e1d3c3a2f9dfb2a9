"""The numbered arrows of the picture and the sentences that explain them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from inference_blueprints.report.picture.blocks import ARROW_GAP, Canvas, Way, draw_number
from inference_blueprints.report.picture.drawing import HEAD, Area, Arrow, Rectangle
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.serving.types import KvTransfer
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class Flow:
    """One arrow between two named blocks, straight along the row or the column that they share."""

    way: Way
    start: str
    end: str
    """`start`, `end`: Anchors of the blocks; the head is at the end."""
    sentence: str = ""
    """What its number explains; an arrow without a sentence has no number and continues the one before it."""
    share: float = 0.5
    """Where on the side that both blocks share: 0 is the left or upper end, 1 the other."""

    @property
    def is_dashed(self) -> bool:
        """Whether it is supply or control rather than a request."""
        return self.way is Way.SUPPLY


#: Half the width in pixels that a number's circle and the space around it take.
_ROOM = 13
_NETWORKS: Mapping[KvTransfer, str] = MappingProxyType({"libfabric": "EFA", "ucx": "TCP"})


def flows(scene: Scene) -> list[Flow]:
    """Return the arrows that a blueprint has, in the order of their numbers.

    scene: The blueprint and its plan.
    """
    ways_in = [*_real_time(scene), *_near_real_time(scene), *_batch(scene)]
    is_one_way = {flow.way for flow in ways_in} == {Way.REAL_TIME}
    return [*ways_in, *_models(scene, Way.REAL_TIME if is_one_way else Way.REQUESTS), *_supply(scene)]


def _real_time(scene: Scene) -> Iterator[Flow]:
    """Yield how a request comes in, and who reads signals."""
    way, first = Way.REAL_TIME, scene.plan.models[0].name
    sentence = (
        f"Applications call the OpenAI API under the model's name in the private zone, such as "
        f"{scene.scheme}://{first}.{scene.zone}/v1."
    )
    if scene.front_door:
        sentence = scene.calling_sentence
    yield Flow(way, "applications", "zone", sentence)
    sentence = f"The name leads to the load balancer, which accepts requests from {scene.sources}."
    yield Flow(way, "zone", "balancer", sentence)
    if scene.blueprint.spec.signal_store:
        sentence = "Applications read signals by key, within a request."
        yield Flow(way, "store", "readers", sentence)


def _models(scene: Scene, way: Way) -> Iterator[Flow]:
    """Yield how a request reaches a worker, whichever way it came in."""
    sentence = f"The load balancer passes the request to the model's {scene.entry_points} by the host name."
    if scene.front_door:
        yield from _through_the_door(scene, way)
    elif scene.named_deployments:
        yield from _by_address(scene, sentence)
    else:
        yield Flow(way, "balancer", "frontends", sentence)
    yield Flow(way, "frontends", "pools", _routing_sentence(scene), share=0.35)
    if scene.publishes_kv_events:
        sentence = "Workers report the blocks in their KV cache to the routers."
        yield Flow(Way.SUPPLY, "pools", "frontends", sentence, share=0.65)


def _through_the_door(scene: Scene, way: Way) -> Iterator[Flow]:
    """Yield how requests pass the front door, and those of queues and jobs that do not."""
    others = [each for each in scene.ways_in if not scene.has_own_address(each)]
    if scene.named_deployments:
        way = Way.REQUESTS if others else Way.REAL_TIME
    sentence = "The load balancer passes the request to a replica of the front door."
    yield Flow(way, "balancer", "door", sentence)
    yield Flow(Way.SUPPLY, "door", "ledger", scene.ledger_sentence)
    sentence = f"The door passes it to {scene.entry_points} of a deployment of its model, over mutual TLS."
    if scene.named_deployments:
        # Beside the heading of the frame that the arrow crosses.
        yield Flow(way, "door", "by-model", sentence, share=0.9)
        yield from _by_own_address(scene)
    else:
        yield Flow(way, "door", "frontends", sentence)


def _by_address(scene: Scene, sentence: str) -> Iterator[Flow]:
    """Yield how requests reach the deployments behind the model's name, and those of queues and jobs."""
    others = [each for each in scene.ways_in if not scene.has_own_address(each)]
    sentence = f"{sentence} The model's name leads to the deployments that no queue or job has for itself."
    yield Flow(Way.REQUESTS if others else Way.REAL_TIME, "balancer", "by-model", sentence)
    yield from _by_own_address(scene)


def _by_own_address(scene: Scene) -> Iterator[Flow]:
    """Yield how requests reach the deployments that queues and jobs have for themselves."""
    queues, jobs = scene.queues, scene.blueprint.spec.streaming
    for way, ways, share in ((Way.BATCH, queues, 0.25), (Way.NEAR_REAL_TIME, jobs, 0.5)):
        if any(map(scene.has_own_address, ways)):
            yield Flow(way, "balancer", "by-way", scene.address_sentence(ways), share=share)


def _near_real_time(scene: Scene) -> Iterator[Flow]:
    """Yield how an event becomes a signal."""
    way = Way.NEAR_REAL_TIME
    if not scene.blueprint.spec.streaming:
        return
    yield Flow(way, "events", "kafka", "Applications send events to Kafka.")
    sentence = "Streaming jobs read the events and turn those of each session into a prompt."
    yield Flow(way, "kafka", "jobs", sentence)
    yield Flow(way, "jobs", "balancer", scene.streaming_sentence)
    sentence = "They write each answer to the signal store."
    yield Flow(way, "jobs", "store", sentence)


def _batch(scene: Scene) -> Iterator[Flow]:
    """Yield how a job runs."""
    way = Way.BATCH
    if scene.blueprint.spec.batch is None:
        return
    yield Flow(
        way, "teams", "api", "Teams submit files of requests to the batch API, which keeps them in S3."
    )
    yield Flow(way, "api", "files")
    yield Flow(way, "api", "queues", "A job is split into shards, which wait in its queue.")
    yield Flow(way, "queues", "workers", "Workers take shards from the queues.")
    yield Flow(way, "workers", "balancer", scene.batch_sentence)
    yield Flow(way, "workers", "files", "Their answers go to files in S3.")
    if scene.blueprint.spec.signal_store:
        sentence = "If the job names a signal, a function reads its answers."
        yield Flow(way, "files", "publisher", sentence, share=0.75)
        yield Flow(way, "publisher", "store", "It writes each answer to the signal store.")


def _routing_sentence(scene: Scene) -> str:
    """Return how requests get to a worker."""
    by_cache = "the worker that holds most of its prefix in the KV cache, weighed against its load"
    if scene.is_direct:
        by_load = "The load balancer sends each request to the worker with the fewest open requests"
        if not (scene.is_kv_aware or scene.is_round_robin):
            return f"{by_load}; tokens stream back the same way."
        by_load += ", if its model has no router."
        return f"{by_load} {_router_sentence(scene, by_cache)}"
    return _router_sentence(scene, by_cache)


def _router_sentence(scene: Scene, by_cache: str) -> str:
    """Return how routers choose a worker."""
    if not scene.is_round_robin:
        found = f"The router sends each request to {by_cache}; tokens stream back the same way."
    elif not scene.is_kv_aware:
        found = "The router sends requests to the workers in turn; tokens stream back the same way."
    else:
        found = f"The router sends each request to {by_cache}, or in turn, depending on the model's routing."
    if not scene.kv_transfers:
        return found
    networks = " or ".join(_NETWORKS[each] for each in scene.kv_transfers)
    return (
        f"{found} With disaggregated serving, a prefill worker computes the prompt, and its KV cache goes "
        f"over {networks} to the decode worker that generates the answer."
    )


def _supply(scene: Scene) -> Iterator[Flow]:
    """Yield what keeps the platform running: nodes, weights, images, watching and deployment."""
    way, spec = Way.SUPPLY, scene.blueprint.spec
    yield Flow(way, "controllers", "pools", scene.controllers_sentence)
    if spec.gpu_health or spec.capacity_shift:
        yield Flow(way, "operations", "pools", scene.operations_sentence)
    way_in = "gateway" if scene.has_own_vpc else "pools"
    if scene.internet:
        sentence = f"{scene.machines} get {scene.internet_goods} through {scene.internet_access}"
        yield Flow(way, "internet", way_in, sentence)
        if scene.has_own_vpc:
            yield Flow(way, "gateway", "private")
    if scene.has_own_vpc:
        yield Flow(way, "services", "endpoints", scene.services_sentence)
        yield Flow(way, "endpoints", "private")
    else:
        yield Flow(way, "services", "private", scene.services_sentence)
    sentence = "Platform engineers deploy the blueprint's CloudFormation stacks."
    yield Flow(way, "engineers", "stacks", sentence)


def explained(arrows: Iterable[Flow]) -> list[tuple[int, Flow]]:
    """Return the arrows that have a sentence, with their numbers."""
    return list(enumerate((flow for flow in arrows if flow.sentence), start=1))


def draw_flows(arrows: Sequence[Flow], canvas: Canvas) -> None:
    """Draw arrows from border to border, each with its number.

    arrows: In the order of their numbers, which start at 1.
    canvas: Where the blocks have been drawn.
    """
    numbers = {flow: number for number, flow in explained(arrows)}
    borders = [shape.area for shape in canvas.shapes if isinstance(shape, Rectangle)]
    for flow in arrows:
        arrow = _arrow(flow, canvas.anchors)
        canvas.shapes.append(arrow)
        if flow in numbers:
            draw_number(canvas, numbers[flow], *_place_of_number(arrow, borders), flow.way.colour)


def _place_of_number(arrow: Arrow, borders: Sequence[Area]) -> tuple[float, float]:
    """Return the point of an arrow, as near to its start as there is, where a circle touches no border."""
    (x1, y1), (x2, y2) = arrow.start, arrow.end
    length = abs(x2 - x1) + abs(y2 - y1)
    middle = (ARROW_GAP - HEAD) / 2
    for distance in range(int(middle), int(length - middle)):
        share = distance / length
        x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
        circle = Area(x - _ROOM, y - _ROOM, 2 * _ROOM, 2 * _ROOM)
        if all(area.contains(circle) or not area.overlaps(circle) for area in borders):
            return x, y
    return x1 + middle / length * (x2 - x1), y1 + middle / length * (y2 - y1)


def _arrow(flow: Flow, anchors: Mapping[str, Area]) -> Arrow:
    start, end = anchors[flow.start], anchors[flow.end]
    top, bottom = max(start.y, end.y), min(start.bottom, end.bottom)
    if top < bottom:
        y = top + flow.share * (bottom - top)
        x1, x2 = (start.right, end.x) if start.x < end.x else (start.x, end.right)
        return Arrow((x1, y), (x2, y), flow.is_dashed, flow.way.colour)
    left, right = max(start.x, end.x), min(start.right, end.right)
    x = left + flow.share * (right - left)
    y1, y2 = (start.bottom, end.y) if start.y < end.y else (start.y, end.bottom)
    return Arrow((x, y1), (x, y2), flow.is_dashed, flow.way.colour)
