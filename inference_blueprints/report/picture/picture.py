"""Draws the platform of a blueprint from the blueprint and its serving plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import inference_catalog as catalog
from inference_blueprints.report.picture.blocks import (
    ARROW_GAP,
    LINE,
    NORMAL,
    SMALL,
    Block,
    Canvas,
    Card,
    Frame,
    Glyph,
    HorizontalStack,
    Space,
    Style,
    VerticalStack,
    Way,
    Words,
    grid,
)
from inference_blueprints.report.picture.drawing import INK, MUTED, Area, Arrow, Text, document, text_width
from inference_blueprints.report.picture.flows import draw_flows, explained, flows
from inference_blueprints.report.picture.pool_blocks import Tag, TaggedLines, device, pools_frame, tags
from inference_blueprints.report.picture.scene import OWN_BUCKET, Scene, counted, first_names
from inference_blueprints.serving.streaming import job_size, topic_partitions
from inference_blueprints.serving.traffic import WayIn, deployment_traffic, model_traffic
from inference_blueprints.serving.types import DeploymentPlan, ServingPlan
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.spec.types import Batch, Blueprint, Kafka, Model, SignalStore, Spec, StreamingJob
from inference_catalog.node_facts import NEURON_SCHEDULER
from inference_contracts.ecs_names import DISCOVERY_MEMBERS
from inference_contracts.number_text import number
from inference_contracts.records import dataclass

_DEVICE = 16.0
_LEGEND_LINE = 22
_COLOUR = "#0072b2"
WIDTH = 1000
_MARGIN = 24
_HEADER = 76
_ACTOR_WIDTH = 156
#: More entry points than these are shown with their rate only.
_MANY = 12
_ROUTER_NOUNS = {"kvAware": "KV-aware frontend", "roundRobin": "round-robin frontend"}
_ACCOUNT = Style("#232f3e")
_VPC = Style("#8c4fff", fill="#fcfaff")
_PUBLIC = Style("#4d7c0f", fill="#f6faef")
_PRIVATE = Style("#006f80", fill="#f2fafb")
_CLUSTER = Style("#a34a00", fill="#ffffff")
_SERVICES = Style("#49525c", fill="#f6f7f8")
_BATCH = Style("#b8124f", fill="#fdf6f9")
_GROUP = Style("#49525c", fill="#fafbfc", dashes="5 4")


@dataclass(frozen=True, slots=True)
class Legend:
    """Every sign that has no text, with its meaning."""

    ways: tuple[Way, ...]
    """Kinds of arrows that there are."""
    decodes: bool = False
    """Whether there are decode workers."""

    def height(self, width: float) -> float:
        """Return the height of the rows with room above them."""
        return 12 + _LEGEND_LINE * (1 + max(row for row, *_ in self._placed(width)))

    def draw(self, area: Area, canvas: Canvas) -> None:
        """Draw the signs with their meaning."""
        for row, left, words, sign in self._placed(area.width):
            x, y = area.x + left, area.y + 22 + _LEGEND_LINE * row
            if isinstance(sign, Way):
                canvas.shapes.append(Arrow((x, y), (x + 36, y), sign is Way.SUPPLY, sign.colour))
            else:
                colour = None if sign == "free" else _COLOUR
                canvas.shapes += device(x, y - 8, _DEVICE, colour, decodes=sign == "decode")
            canvas.shapes.append(Text(x + self._indent(sign), y + 4, words, SMALL, colour=MUTED))

    def _placed(self, width: float) -> Iterator[tuple[int, float, str, Way | str]]:
        """Yield row and left edge of each sign, its meaning and what it shows."""
        row, x = 0, 0.0
        signs: list[tuple[str, Way | str]] = [
            *((way.label, way) for way in self.ways),
            ("accelerator in use", "held"),
            ("free accelerator", "free"),
            *([("decode accelerator", "decode")] if self.decodes else []),
        ]
        for words, sign in signs:
            needed = self._indent(sign) + text_width(words, SMALL)
            if x + needed > width:
                row, x = row + 1, 0.0
            yield row, x, words, sign
            x += needed + 24

    @staticmethod
    def _indent(sign: Way | str) -> float:
        return 44 if isinstance(sign, Way) else 24


def picture(blueprint: Blueprint, plan: ServingPlan) -> str:
    """Draw the platform of a blueprint.

    plan: The serving plan computed from it.
    Returns: A self-contained SVG, 1000 pixels wide; the same blueprint gives the same text.
    """
    scene = Scene(blueprint, plan)
    canvas, height = draw(scene)
    sentences = " ".join(f"{number}. {flow.sentence}" for number, flow in explained(flows(scene)))
    return document(
        canvas.shapes,
        width=WIDTH,
        height=height,
        title=f"Platform of the blueprint {scene.title}",
        description=f"{scene.subtitle}. {sentences}",
    )


def draw(scene: Scene) -> tuple[Canvas, float]:
    """Lay the picture out.

    scene: The blueprint and its plan.
    Returns: The shapes with their places, and the height in pixels.
    """
    canvas = Canvas()
    inner = WIDTH - 2 * _MARGIN
    canvas.text(_MARGIN, 42, scene.title, inner, size=24, bold=True, colour=INK)
    canvas.text(_MARGIN, 64, scene.subtitle, inner, size=SMALL)
    account = _account(scene)
    left = _MARGIN + _ACTOR_WIDTH + ARROW_GAP
    area = Area(left, _HEADER + 8, WIDTH - _MARGIN - left, 0)
    height = account.height(area.width)
    account.draw(Area(area.x, area.y, area.width, height), canvas)
    _draw_actors(scene, canvas)
    arrows = flows(scene)
    draw_flows(arrows, canvas)
    ways = tuple(way for way in Way if any(flow.way is way for flow in arrows))
    notes = VerticalStack(
        [
            *(Words((flow.sentence,), NORMAL, n, flow.way.colour) for n, flow in explained(arrows)),
            Legend(ways, bool(scene.kv_transfers)),
        ],
        gap=6,
    )
    notes_height = notes.height(inner)
    notes.draw(Area(_MARGIN, area.y + height + 22, inner, notes_height), canvas)
    return canvas, area.y + height + 22 + notes_height + _MARGIN


def _draw_actors(scene: Scene, canvas: Canvas) -> None:
    """Draw those outside AWS on the left, each level with what it talks to."""
    spec = scene.blueprint.spec
    actors = {
        "zone": Card("Applications", ("OpenAI API",), Glyph.APPLICATIONS, "applications", Way.REAL_TIME)
    }
    if spec.streaming:
        actors["kafka"] = Card(
            "Event sources", ("producers",), Glyph.APPLICATIONS, "events", Way.NEAR_REAL_TIME
        )
    if spec.batch:
        teams = ", ".join(first_names([team.name for team in spec.teams]))
        actors["api"] = Card("Teams", (teams,), Glyph.ENGINEER, "teams", Way.BATCH)
    if spec.signal_store:
        actors["store"] = Card("Applications", ("read signals",), Glyph.APPLICATIONS, "readers")
    if scene.internet:
        way_out = "gateway" if scene.has_own_vpc else "pools"
        actors[way_out] = Card(scene.outside, scene.internet, Glyph.INTERNET, "internet")
    actors["stacks"] = Card("Engineers", ("blueprints deploy",), Glyph.ENGINEER, "engineers")
    for anchor, card in actors.items():
        beside = canvas.anchors[anchor]
        height = card.height(_ACTOR_WIDTH)
        y = beside.y + (beside.height - height - (LINE if card.way else 0)) / 2
        card.draw(Area(_MARGIN, y, _ACTOR_WIDTH, height), canvas)


def _account(scene: Scene) -> Block:
    """Return everything in the account."""
    batch = scene.blueprint.spec.batch
    blocks = [*([_batch_frame(batch)] if batch else []), _vpc(scene), _services(scene)]
    return Frame(scene.account, VerticalStack(blocks, gap=ARROW_GAP), _ACCOUNT, note=scene.region)


def _services(scene: Scene) -> Block:
    """Return the services beside the VPC."""
    registries = scene.private_registries
    cards = [
        Card("CloudFormation", ("stacks of the blueprint",), Glyph.STACKS, "stacks"),
        *([Card("Weights", (f"S3, {', '.join(scene.buckets)}",), Glyph.BUCKET)] if scene.buckets else []),
        *([Card("Private registry", registries, Glyph.BUCKET)] if registries else []),
        *([Card("Compiled programs", (f"S3, {OWN_BUCKET}",), Glyph.BUCKET)] if scene.keeps_compiled else []),
        *_usage(scene.blueprint.spec),
        *_of_cluster(scene),
        *_telemetry(scene),
    ]
    # One card alone in the last row would look lost.
    child = grid(cards, columns=2 if len(cards) % 3 == 1 else 3)
    return Frame("AWS services", child, _SERVICES, anchor="services")


def _usage(spec: Spec) -> list[Card]:
    """Return where the usage records of the front door are kept; nothing without one."""
    door = spec.front_door
    return [Card("Usage records", (f"S3, {door.usage.retention_days} days",), Glyph.BUCKET)] if door else []


def _of_cluster(scene: Scene) -> list[Card]:
    """Return the services that belong to the cluster."""
    if scene.blueprint.spec.cluster.ecs:
        return [
            Card("ECS cluster", ("no control plane to maintain",), Glyph.CONTROL_PLANE),
            Card("KMS key", ("data, secrets, logs",), Glyph.KEY),
            *([Card("EFS", ("of the discovery store",), Glyph.BUCKET)] if scene.plan.has_frontends else []),
        ]
    return [
        Card("EKS control plane", (scene.cluster_endpoint,), Glyph.CONTROL_PLANE),
        Card("KMS key", ("data, Kubernetes secrets",), Glyph.KEY),
        Card("Interruption queue", ("SQS, for Karpenter",), Glyph.QUEUE),
    ]


def _telemetry(scene: Scene) -> list[Card]:
    """Return what keeps metrics, logs and traces; nothing without observability."""
    observability = scene.blueprint.spec.observability
    if observability is None:
        return []
    lines = (f"metrics, alarms, logs of {observability.logs.retention_days} days",)
    cards = [Card("CloudWatch", lines, Glyph.CONTROLLER)]
    if observability.traces:
        share = f"{number(observability.traces.sample_ratio, 4)} of requests"
        cards.append(Card("X-Ray", (f"traces, {share}",), Glyph.ROUTER))
    return cards


def _operations(scene: Scene) -> Block | None:
    """Return the functions that watch the pools; None if there are none."""
    spec, cards = scene.blueprint.spec, []
    if health := spec.gpu_health:
        acts = "replaces their nodes" if health.action == "replace" else "only records"
        looks = "finds broken and slow GPUs" if health.slow_gpus else "finds broken GPUs"
        cards.append(Card("GPU health", (f"{looks}, {acts}",), Glyph.CONTROLLER))
    if shift := spec.capacity_shift:
        acts = "lends idle capacity to batch" if shift.action == "shift" else "only records"
        cards.append(Card("Capacity shift", (f"forecasts demand, {acts}",), Glyph.CONTROLLER))
    if not cards:
        return None
    return Frame("Operations", grid(cards, columns=2), _GROUP, note="Lambda functions", anchor="operations")


def _vpc(scene: Scene) -> Block:
    """Return the VPC with its subnets."""
    operations = _operations(scene)
    door = [_door_row(scene, scene.front_door)] if scene.front_door else []
    blocks = [_entrance(scene), *door, _cluster(scene), *([operations] if operations else [])]
    private = Frame(
        "Private subnets",
        VerticalStack(blocks, gap=ARROW_GAP),
        _PRIVATE,
        note=f"zones {', '.join(zone.removeprefix(scene.region) for zone in scene.zones)}",
        anchor="private",
    )
    if not scene.has_own_vpc:
        return Frame("VPC", private, _VPC, note=scene.vpc)
    gateway = Card("NAT gateways", (f"{len(scene.zones)}, one per zone",), Glyph.NAT_GATEWAY, "gateway")
    kinds = [endpoint.kind for endpoint in catalog.endpoints().values()]
    lines = (f"{kinds.count('interface')} interfaces and S3", "AWS services without internet")
    endpoints = Card("VPC endpoints", lines, Glyph.ENDPOINT, "endpoints")
    ways_out = HorizontalStack([Frame("Public subnets", gateway, _PUBLIC), endpoints], gap=ARROW_GAP)
    return Frame("VPC", VerticalStack([private, ways_out], gap=ARROW_GAP), _VPC, note=scene.vpc)


def _entrance(scene: Scene) -> Block:
    """Return the three ways in: what each passes through, and the load balancer that all of them call."""
    spec = scene.blueprint.spec
    zone = Card("Private zone", (scene.zone, scene.names), Glyph.PRIVATE_ZONE, "zone")
    rows = [
        *([_workers_row(spec.batch, spec.signal_store)] if spec.batch else []),
        *([_store_card(spec.signal_store)] if spec.signal_store else []),
        *([_streaming_row(spec.kafka, spec.streaming)] if spec.streaming else []),
        zone,
    ]
    port = "HTTPS, port 443" if scene.scheme == "https" else "HTTP, port 80"
    lines = ("internal", port, f"from {scene.sources}")
    balancer = Card("Application Load Balancer", lines, Glyph.LOAD_BALANCER, "balancer")
    # Where there are two groups of deployments, it stands above both, and batch's workers still below queues.
    weights = (14, 9) if scene.named_deployments else (5, 2)
    return HorizontalStack([VerticalStack(rows, gap=ARROW_GAP), balancer], weights=weights, gap=ARROW_GAP)


def _door_row(scene: Scene, door: DoorPlan) -> Block:
    """Return the front door, below the load balancer and above the frontends, and what it counts in."""
    configuration = door.configuration
    kind = "tasks on AWS Fargate" if scene.blueprint.spec.cluster.ecs else "pods on system nodes"
    lines = (
        f"{door.replicas} {kind}, {door.vcpus:g} {'vCPU' if door.vcpus == 1 else 'vCPUs'} each",
        ", ".join(
            (
                counted(len(configuration.public_models), "model"),
                counted(len(configuration.budgets), "budget"),
            )
        ),
        scene.identities,
    )
    teams = ", ".join(first_names([team.name for team in configuration.teams]))
    cards = [
        Card("Budgets and keys", ("ElastiCache for Valkey, DynamoDB", f"of {teams}"), Glyph.KEY, "ledger"),
        Card("Front door", lines, Glyph.ROUTER, "door"),
    ]
    if scene.named_deployments:
        # Requests of queues and jobs with deployments of their own pass beside it.
        return HorizontalStack([*cards, Space()], weights=(5, 6, 5), gap=ARROW_GAP)
    return HorizontalStack(cards, gap=ARROW_GAP)


def _batch_frame(batch: Batch) -> Block:
    """Return what accepts jobs and keeps their files: services outside the VPC."""
    queues = ", ".join(first_names([queue.name for queue in batch.queues]))
    cards = [
        Card("Batch API", ("private API Gateway, Lambda",), Glyph.ENDPOINT, "api"),
        Card("Queues", (queues, "Step Functions, SQS"), Glyph.QUEUE, "queues"),
        Card("Requests and answers", ("files in S3",), Glyph.BUCKET, "files"),
    ]
    return Frame("Batch", grid(cards, columns=2, gap=ARROW_GAP), _BATCH)


def _workers_row(batch: Batch, store: SignalStore | None) -> Block:
    """Return what sends the requests of jobs to the models, and what writes their answers to the store."""
    workers = batch.workers
    count = f"{workers.min}" if workers.min == workers.max else f"{workers.min} to {workers.max}"
    place = f"AWS Fargate, {workers.ecs.spot_percent} % Spot" if workers.ecs else "pods on system nodes"
    card = Card("Batch workers", (f"{count} per model", place), Glyph.CONTROLLER, "workers")
    if store is None:
        return card
    publisher = Card("Publisher", ("Lambda function",), Glyph.CONTROLLER, "publisher")
    return HorizontalStack([publisher, card], gap=ARROW_GAP)


def _store_card(store: SignalStore) -> Card:
    """Return the signal store with the teams whose signals it holds."""
    teams = ", ".join(first_names(sorted({signal.team for signal in store.signals})))
    size = f"ElastiCache for Valkey, up to {store.valkey.max_gb:,} GB"
    return Card("Signal store", (size, f"signals of {teams}"), Glyph.BUCKET, "store")


def _streaming_row(kafka: Kafka | None, jobs: list[StreamingJob]) -> Block:
    """Return Kafka with its topics, and the jobs that read them."""
    express = kafka.express if kafka else None
    brokers = (
        f"{express.brokers} Express brokers, {express.instance_type}" if express else "an existing cluster"
    )
    topics = ", ".join(first_names(sorted(topic_partitions(jobs))))
    size = counted(sum(job_size(job).all_kpus for job in jobs), "KPU")
    cards = [
        Card("Amazon MSK", (f"topics: {topics}", brokers), Glyph.QUEUE, "kafka"),
        Card(
            "Streaming jobs",
            (", ".join(first_names([job.name for job in jobs])), f"Managed Flink, {size}"),
            Glyph.CONTROLLER,
            "jobs",
        ),
    ]
    return HorizontalStack(cards, gap=ARROW_GAP)


def _cluster(scene: Scene) -> Block:
    """Return the cluster with what runs on its system nodes and its pools."""
    model_tags = tags([model.name for model in scene.plan.models])
    entry_points = sum(len(model.deployments) for model in scene.plan.models)
    # One model needs less height than the controllers below one another, and leaves them the width for two.
    columns, weights = (2, (1, 1)) if entry_points == 1 else (1, (3, 8))
    system = HorizontalStack(
        [_controllers(scene, columns), _frontends(scene, model_tags)], weights=weights, gap=16
    )
    return Frame(
        scene.cluster_name,
        VerticalStack([system, pools_frame(scene, model_tags)], gap=ARROW_GAP),
        _CLUSTER,
    )


def _frontends(scene: Scene, model_tags: Mapping[str, Tag]) -> Block:
    """Return each model's entry points; only their peak rates if there are very many."""
    served = [
        (model, plan, deployment)
        for model, plan in zip(scene.blueprint.spec.models, scene.plan.models, strict=True)
        for deployment in plan.deployments
    ]
    are_many = len(served) > _MANY
    cards = {
        (model.name, deployment.name): TaggedLines(
            model_tags[model.name],
            model.name if len(plan.deployments) == 1 else f"{model.name}/{deployment.name}",
            _request_lines(scene.blueprint.spec, model, deployment, only_rates=True)
            if are_many
            else (
                *([f"also {model.public_name}"] if model.public_name else []),
                plan.catalog_name,
                _entry_point_words(deployment, model.routing.chosen),
                *_request_lines(scene.blueprint.spec, model, deployment),
            ),
        )
        for model, plan, deployment in served
    }
    place = scene.system_note if scene.has_routers else "behind the load balancer"
    child: Block = grid([*cards.values()], columns=3 if are_many else 2, gap=8)
    if named := scene.named_deployments:
        groups = {
            "by-model": ("Behind the model's name", [cards[key] for key in cards if key not in named]),
            "by-way": ("For queues and jobs alone", [cards[key] for key in cards if key in named]),
        }
        frames = [
            Frame(title, grid(own, columns=1, gap=8), _GROUP, note=place, anchor=anchor)
            for anchor, (title, own) in groups.items()
        ]
        child = HorizontalStack(frames, weights=(4, 3))
    title = "Frontends and routers" if scene.has_routers else "Models"
    # Arrows to groups cross the heading of this frame.
    return Frame(title, child, _GROUP, note="" if named else place, anchor="frontends")


def _entry_point_words(deployment: DeploymentPlan, routing: str) -> str:
    """Return such as ``2 KV-aware frontends``, or ``no router, 2 servers``."""
    if deployment.entry_point.is_worker:
        entry = deployment.entry_point
        # Those that may all go would stand there as 0 servers.
        least = "" if entry.replicas else "0 to "
        return f"no router, {least}{counted(entry.replicas or entry.maximum, 'server')}"
    noun = "llm-d router" if deployment.picker else _ROUTER_NOUNS[routing]
    return counted(deployment.entry_point.replicas, noun)


def _request_lines(
    spec: Spec, model: Model, plan: DeploymentPlan, *, only_rates: bool = False
) -> tuple[str, ...]:
    """Return a line for each way in which requests come in to a deployment.

    Such as ``3,000 tokens in, 200 out, 2/s``, and ``queue nightly: ...`` if there is more than real time.
    """
    deployment = next(each for each in model.deployments if each.name == plan.name)
    whole = {(way.kind, way.name): way for way in model_traffic(spec, model).ways}
    ways = deployment_traffic(spec, model, deployment).ways
    if not ways:
        return ("no requests",)
    is_plain = [way.kind for way in ways] == ["realTime"]
    lines = []
    for way in ways:
        rate = _rate_words(way, whole[way.kind, way.name])
        words = (rate,) if only_rates else (_length_words(model, way), rate)
        shown = [word for word in words if word]
        label = "" if is_plain else way.label.replace("'", "")
        lines.append(": ".join(each for each in (label, ", ".join(shown)) if each))
    return tuple(lines)


def _length_words(model: Model, way: WayIn) -> str:
    """Return such as ``3,000 tokens in, 200 out``, or ``1 image of …`` with the stated maximum of prompts."""
    means = way.means
    if images := means.images:
        return f"{counted(images.per_request, 'image')} of {images.size}"
    prompt = f"{means.input_tokens:,} tokens in"
    if way.states_longest:
        prompt += f" (at most {way.longest_input:,})"
    if within := way.prompt_images:
        prompt += f" with {within.mean:g} images"
    written = {"embed": "a vector", "rerank": "scores"}.get(model.task, f"{means.output_tokens:,}")
    return f"{prompt}, {written} out"


def _rate_words(part: WayIn, whole: WayIn) -> str:
    """Return such as ``2/s``, or ``1 of 2/s`` for a deployment with a part of the requests.

    Nothing for a queue: batch takes what is left.
    """
    rate, of = part.means.peak_requests_per_second, whole.means.peak_requests_per_second
    if part.kind == "queue":
        return ""
    whole_rate = f"{of:g}" if part.kind == "realTime" else number(of)
    return f"{whole_rate}/s" if rate == of else f"{number(rate)} of {whole_rate}/s"


def _pods_of_batch_scale(spec: Spec) -> bool:
    """Return whether the number of batch's pods follows its queues."""
    workers = spec.batch.workers if spec.batch else None
    return workers is not None and workers.ecs is None and workers.min < workers.max


def _controllers(scene: Scene, columns: int) -> Block:
    """Return what runs the cluster itself."""
    spec = scene.blueprint.spec
    if spec.cluster.ecs and not scene.plan.has_frontends:
        card = Card("Capacity providers", ("start hosts for waiting tasks",), Glyph.CONTROLLER)
        return Frame("Controllers", VerticalStack([card]), _GROUP, anchor="controllers")
    if spec.cluster.ecs:
        card = Card("Discovery store", (f"etcd, {DISCOVERY_MEMBERS} members",), Glyph.CONTROLLER)
        return Frame("Discovery", VerticalStack([card]), _GROUP, note=scene.system_note, anchor="controllers")
    cards = [Card("Karpenter", (), Glyph.CONTROLLER), Card("Dynamo operator", (), Glyph.ROUTER)]
    if scene.plan.is_elastic or _pods_of_batch_scale(spec):
        cards.append(Card("KEDA", (), Glyph.CONTROLLER))
    if NEURON_SCHEDULER in scene.plan.schedulers:
        cards.append(Card("Neuron scheduler", (), Glyph.CONTROLLER))
    if spec.queueing and spec.queueing.kueue:
        cards.append(Card("Kueue", (), Glyph.QUEUE))
    wide = Card("Load Balancer Controller", (), Glyph.LOAD_BALANCER)
    child = VerticalStack([grid(cards, columns=columns, gap=8), wide], gap=8)
    return Frame("Controllers", child, _GROUP, note=scene.system_note, anchor="controllers")
