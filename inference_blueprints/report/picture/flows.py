"""The numbered arrows of the picture and the sentences that explain them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from inference_blueprints.report.picture.blocks import ARROW_GAP, Canvas, draw_number
from inference_blueprints.report.picture.drawing import Area, Arrow
from inference_blueprints.report.picture.job_blocks import batch_sentence, streaming_sentence
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.serving.types import KvTransfer


@dataclass(frozen=True, slots=True)
class Flow:
    """One arrow between two named blocks, straight along a row or a column."""

    start: str
    end: str
    """`start`, `end`: Anchors of the blocks; the head is at the end."""
    direction: Literal["row", "column"]
    """Whether it runs along a row or a column."""
    at: tuple[str, float]
    """Anchor on whose axis it runs, and where on it: 0 is the left or upper edge, 1 the other."""
    sentence: str
    dashed: bool = False
    """Whether it is control rather than a request."""


_NETWORKS: Mapping[KvTransfer, str] = MappingProxyType({"libfabric": "EFA", "ucx": "TCP"})


def flows(scene: Scene) -> list[Flow]:
    """Return the arrows that a blueprint has, in the order of their numbers.

    scene: The blueprint and its plan.
    """
    first = scene.plan.models[0].name
    arrows = [
        Flow(
            "applications",
            "balancer",
            "row",
            ("balancer", 0.5),
            f"Applications call the OpenAI API under the model's name in the private zone, such as "
            f"{scene.scheme}://{first}.{scene.zone}/v1; the load balancer admits {scene.sources}.",
        ),
        Flow(
            "balancer",
            "frontends",
            "column",
            ("balancer", 0.85),
            f"The load balancer passes the request to the model's {scene.entry_points} by the host name.",
        ),
        Flow("frontends", "pools", "column", ("frontends", 0.25), _routing_sentence(scene)),
    ]
    if scene.publishes_kv_events:
        arrows.append(
            Flow(
                "pools",
                "frontends",
                "column",
                ("frontends", 0.75),
                "Workers report the blocks in their KV cache to the routers.",
                dashed=True,
            )
        )
    arrows.append(
        Flow(
            "controllers",
            "pools",
            "column",
            ("controllers", 0.5),
            scene.controllers_sentence,
            dashed=True,
        )
    )
    return [*arrows, *_supply(scene)]


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


def _supply(scene: Scene) -> list[Flow]:
    """Return how weights and images arrive and how the platform is deployed."""
    way_out = "gateway" if scene.has_own_vpc else "pools"
    through = "through the NAT gateways" if scene.has_own_vpc else "through the VPC's internet access"
    weights = "weights from the Hugging Face Hub and " if scene.uses_hugging_face else ""
    compiled = " The first compiles the model, and others load the result from S3."
    arrows = [
        Flow(
            "internet",
            way_out,
            "row",
            (way_out, 0.5),
            f"A starting worker gets {weights}container images from {', '.join(scene.registries)} {through}."
            f"{compiled if scene.keeps_compiled else ''}",
            dashed=True,
        )
    ]
    if scene.has_own_vpc:
        arrows.append(
            Flow(
                "gateway",
                "private",
                "column",
                ("gateway", 0.5),
                "The NAT gateways pass them on to the nodes. Nothing on the internet can connect to a node.",
                dashed=True,
            )
        )
    if scene.buckets:
        arrows.append(
            Flow(
                "weights",
                "pools",
                "column",
                ("weights", 0.5),
                f"Weights stream from S3 ({', '.join(scene.buckets)}) into the accelerators.",
                dashed=True,
            )
        )
    arrows.append(
        Flow(
            "engineers",
            "stacks",
            "row",
            ("stacks", 0.5),
            "Platform engineers deploy the blueprint's CloudFormation stacks.",
            dashed=True,
        )
    )
    batch = scene.blueprint.spec.batch
    if batch:
        arrows.append(Flow("teams", "batch", "row", ("batch", 0.5), batch_sentence(scene, batch)))
    if scene.blueprint.spec.streaming:
        arrows.append(Flow("events", "streaming", "row", ("streaming", 0.5), streaming_sentence()))
    return arrows


def draw_flows(arrows: Sequence[Flow], canvas: Canvas) -> None:
    """Draw arrows from border to border, each with its number.

    arrows: In the order of their numbers, which start at 1.
    canvas: Where the blocks have been drawn.
    """
    for number, flow in enumerate(arrows, start=1):
        arrow = _arrow(flow, canvas.anchors)
        canvas.shapes.append(arrow)
        draw_number(canvas, number, *_beside_start(arrow))


def _beside_start(arrow: Arrow) -> tuple[float, float]:
    """Return the middle of the gap that follows an arrow's start, clear of the borders that it crosses."""
    (x1, y1), (x2, y2) = arrow.start, arrow.end
    length = abs(x2 - x1) + abs(y2 - y1)
    share = ARROW_GAP / 2 / length
    return x1 + share * (x2 - x1), y1 + share * (y2 - y1)


def _arrow(flow: Flow, anchors: Mapping[str, Area]) -> Arrow:
    start, end = anchors[flow.start], anchors[flow.end]
    name, share = flow.at
    axis = anchors[name]
    if flow.direction == "row":
        y = axis.y + share * axis.height
        x1, x2 = (start.right, end.x) if start.x < end.x else (start.x, end.right)
        return Arrow((x1, y), (x2, y), flow.dashed)
    x = axis.x + share * axis.width
    y1, y2 = (start.bottom, end.y) if start.y < end.y else (start.y, end.bottom)
    return Arrow((x, y1), (x, y2), flow.dashed)
