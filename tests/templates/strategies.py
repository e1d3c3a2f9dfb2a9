"""Valid blueprints, drawn from the catalogue and the blueprint's types."""
# Valid by arithmetic, not by asking the loader: if that refuses one, this file or a rule is wrong.

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import inference_catalog as catalog
from inference_blueprints.spec.sections.pools.rules import CAPACITY_BLOCK_FAMILIES
from inference_catalog.catalogue import shipped
from tests.templates.batch_strategies import batches
from tests.templates.direct_strategies import direct_models, has_bfloat16, runs_on
from tests.templates.elastic_strategies import shifts, with_elastic_workers
from tests.templates.environment_strategies import environments
from tests.templates.front_door_strategies import with_front_door
from tests.templates.image_strategies import FROM_SNAPSHOT, IMAGE_ACCELERATIONS, pull_where_no_snapshot_can_be
from tests.templates.network_strategies import networks, vpcs
from tests.templates.observability_strategies import observability, repairs
from tests.templates.options import drafts_for, with_options
from tests.templates.splits import WEIGHT_SHARE, split, topology
from tests.templates.streaming_strategies import streams
from tests.templates.traffic_strategies import with_traffic
from tests.templates.weight_strategies import MIRROR, own_image, weights_of

Document = dict[str, Any]
Draw = Callable[..., Any]

PLATFORM = "try"
ACCOUNT = "111122223333"
_RELEASE = catalog.engine("vllm").version
_DYNAMO_ROUTERS: list[Document] = [
    {},
    {"stack": {"dynamo": {}}, "routing": {"roundRobin": {}}},
    {"routing": {"kvAware": {}}},
    {"routing": {"kvAware": {"overlapCredit": 0.5, "temperature": 0.2}}},
    {"routing": {"kvAware": {"busyCacheFraction": 0.9, "busyPrefillTokens": 100000}}},
    {"routing": {"kvAware": {"sessionAffinitySeconds": 600}}, "frontend": {"env": {"DYN_LOG": "debug"}}},
    {"frontend": {"replicas": 1, "cpu": 1, "memoryGib": 2, "image": f"{MIRROR}/dynamo-frontend:{_RELEASE}"}},
]
#: The router of llm-d has one way of routing, and vLLM alone behind it.
_ROUTERS: list[Document] = [
    *_DYNAMO_ROUTERS,
    {"stack": {"llmD": {}}},
    {"stack": {"llmD": {"prefixScorer": "precise"}}, "routing": {"kvAware": {}}},
]

_SIZES = (1, 2, 4, 8)
_AMPLE_NVME_GB = 3000
_SHORT_WORKLOAD = {"inputTokens": 200, "outputTokens": 50, "peakRequestsPerSecond": 0.5}
#: As many tokens as Gemma 3 makes of every image; one of them fits the shortest context above.
_MEDIA = st.fixed_dictionaries(
    {"imagesPerRequest": st.just(1), "tokensPerImage": st.just(256)},
    optional={"allowedDomains": st.just(["images.example.com", "files.example.com"])},
)
#: Engines whose images read weights from S3, and all of them.
_IMAGE = own_image("vllm")
_STREAMING_ENGINES: list[Document] = [
    {"vllm": {}},
    {"vllm": {"args": {"max-model-len": 2048}, "env": {"NCCL_DEBUG": "INFO"}}},
    {"vllm": {"image": _IMAGE}},
]
_ENGINES = [
    *_STREAMING_ENGINES,
    {"sglang": {"args": {"context-length": 2048}, "env": {"NCCL_DEBUG": "INFO"}, "image": _IMAGE}},
    {"tensorrtLlm": {"args": {"publish-metrics": True}, "env": {"NCCL_DEBUG": "INFO"}, "image": _IMAGE}},
]


@dataclass(frozen=True)
class Ground:
    """What CloudFormation could change of a platform only by building it anew: its place, VPC and version."""

    environment: Document
    network: Document
    version: str


@st.composite
def blueprints(draw: Draw) -> Document:
    """Return a valid blueprint, as YAML would give it."""
    ground = draw(grounds(st.sampled_from(sorted(catalog.regions()))))
    blueprint: Document = draw(with_front_door(draw(with_traffic(draw(blueprints_on(ground)))), ACCOUNT))
    return blueprint


@st.composite
def lives(draw: Draw, region: str, *, steps: int) -> list[Document]:
    """Return what one platform's file says one after the other: anything changes that may."""
    ground = draw(grounds(st.just(region)))
    return [draw(with_front_door(draw(blueprints_on(ground)), ACCOUNT)) for _ in range(steps)]


@st.composite
def grounds(draw: Draw, regions: st.SearchStrategy[str]) -> Ground:
    """Return what a platform that stands cannot change."""
    region = draw(regions)
    zones = catalog.regions()[region]
    named = draw(
        _some(
            availabilityZones=st.lists(
                st.sampled_from(zones), min_size=2, max_size=min(4, len(zones)), unique=True
            )
        )
    )
    return Ground(
        environment={"region": region} | named,
        network=draw(vpcs(named.get("availabilityZones"))),
        version=draw(st.sampled_from(tuple(shipped().kubernetes_versions))),
    )


@st.composite
def blueprints_on(draw: Draw, ground: Ground) -> Document:
    """Return a valid blueprint of a platform that stands."""
    region = ground.environment["region"]
    environment = ground.environment | draw(environments(ACCOUNT))
    network = ground.network | draw(networks(region, ACCOUNT))
    zones = environment.get("availabilityZones") or catalog.regions()[region][:3]
    pools, models = draw(_serving(region, zones))
    writing = [model["name"] for model in models if "task" not in model]
    jobs = draw(batches(writing, ACCOUNT))
    jobs |= draw(streams(writing, jobs, region=region, account=ACCOUNT, zones=len(zones)))
    measured = draw(_some(observability=observability(region, ACCOUNT)))
    models = draw(with_elastic_workers(models)) if measured else models
    watched = draw(repairs(pools)) if measured else {}
    eks = {"version": ground.version} | draw(
        _some(endpointAccess=st.sampled_from(["private", "publicAndPrivate"]), extendedSupport=st.booleans())
    )
    return {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": PLATFORM},
        "spec": {
            "environment": environment,
            **({"network": network} if network else {}),
            "cluster": {"eks": eks},
            "pools": pools,
            "models": models,
            **draw(_some(queueing=st.sampled_from([{"kueue": {}}, {"kueue": {"borrowing": {}}}]))),
            **measured,
            **watched,
            **jobs,
            **(draw(shifts(models, jobs)) if measured else {}),
        },
    }


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """Return a mapping in which each key is there or not."""
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def _serving(draw: Draw, region: str, zones: Sequence[str]) -> tuple[list[Document], list[Document]]:
    """Return pools, and models of which each deployment has room on one of them."""
    names = draw(_names("pool", maximum=3))
    called = draw(_names("model", maximum=2))
    # Few draws come here, so half of them do: the last model has a pool to itself.
    apart = called.pop() if draw(st.booleans()) else None
    chosen = [draw(_instance_types(accelerated=True)) for _ in names]
    sizes: list[list[int]] = [[] for _ in chosen]
    models = []
    for model in called:
        fitting = _fitting_models(chosen)
        # Few models read images or have a draft, so they come oftener.
        rare = [each for each in fitting if catalog.model(each[0]).vision or drafts_for(each[0])]
        entry, placements = draw(st.sampled_from(fitting + 3 * rare))
        deployments = []
        for deployment in draw(_names("d", maximum=2)):
            roles = draw(_roles(placements))
            for pool, size, replicas in roles:
                sizes[pool] += [size] * replicas
            workers = [
                {"pool": names[pool], "replicas": replicas, "tensorParallelSize": size}
                for pool, size, replicas in roles
            ]
            deployments.append({"name": deployment, **topology(workers)})
        section = draw(_models(model, entry, region))
        used = [
            kind for item in deployments for kind in _types_of(item, dict(zip(names, chosen, strict=True)))
        ]
        if not runs_on(section, entry, used):
            section.pop("engine", None)
        kept = draw(_kept(chosen)) if "tensorrtLlm" not in section.get("engine", {}) else {}
        section |= kept | {"deployments": deployments}
        # Few draws come here, so all of them do.
        section |= {"media": draw(_MEDIA)} if _may_read_images(section, entry) else {}
        whole = draw(split(section, entry, dict(zip(names, chosen, strict=True))))
        models.append(draw(with_options(whole, entry)))
    pools = [
        draw(_pools(name, types, held, zones)) for name, types, held in zip(names, chosen, sizes, strict=True)
    ]
    pull_where_no_snapshot_can_be(pools, models)
    if _have_nvme_to_spare(chosen, pools):
        for model in models:
            if "kvCache" in model and "vllm" in model.get("engine", {"vllm": {}}):
                _keep_further(draw, model)
    if apart:
        free = next(name for name in (f"pool-{index}" for index in range(4)) if name not in names)
        direct = draw(direct_models(apart, free, region, ACCOUNT))
        pools.append(draw(_pools(free, direct.types, direct.sizes, zones)) | direct.pool)
        models.append(direct.model)
        pull_where_no_snapshot_can_be(pools, models)
    if draw(st.booleans()):
        pools.append(draw(_pools("unused", draw(_instance_types(accelerated=False)), [], zones)))
    return pools, models


@st.composite
def _roles(draw: Draw, placements: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return pool, tensor parallel size and replicas of a deployment's workers, of one role or of two."""
    places = draw(st.lists(st.sampled_from(placements), min_size=1, max_size=2))
    # Prefill comes first; decode has a multiple of its size.
    by_size = sorted(places, key=lambda place: place[1])
    return [(pool, size, draw(st.integers(1, 3))) for pool, size in by_size]


def _names(kind: str, *, maximum: int) -> st.SearchStrategy[list[str]]:
    """Return names that differ, of few, so that what goes comes back."""
    known = [f"{kind}-{index}" for index in range(maximum + 1)]
    return st.lists(st.sampled_from(known), min_size=1, max_size=maximum, unique=True)


@st.composite
def _instance_types(draw: Draw, *, accelerated: bool) -> list[catalog.InstanceType]:
    """Return interchangeable types: of one NVIDIA accelerator that a model fits, or of anything else."""
    kinds: dict[tuple[str, str], list[catalog.InstanceType]] = {}
    for instance_type in catalog.instance_types().values():
        accelerator = instance_type.accelerator
        if accelerated == bool(accelerator and has_bfloat16(accelerator)):
            kind = (accelerator.name if accelerator else "", instance_type.architecture)
            kinds.setdefault(kind, []).append(instance_type)
    types = kinds[draw(st.sampled_from(sorted(kinds)))]
    drawn: list[catalog.InstanceType] = draw(
        st.lists(st.sampled_from(types), min_size=1, max_size=3, unique_by=lambda each: each.name)
    )
    return drawn


def _fitting_models(chosen: list[list[catalog.InstanceType]]) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return the models that fit some pool, each with the pools and tensor parallel sizes that hold it."""
    return [
        (name, placements)
        for name, model in catalog.models().items()
        if (
            placements := [
                (pool, size)
                for pool, types in enumerate(chosen)
                for size in _SIZES
                if all(_fits(model, instance_type, size) for instance_type in types)
            ]
        )
    ]


def _types_of(
    deployment: Document, pools: Mapping[str, list[catalog.InstanceType]]
) -> list[catalog.InstanceType]:
    """Return the instance types on which a deployment's workers may run."""
    roles = deployment.get("disaggregated") or {"aggregated": deployment.get("aggregated")}
    return [kind for workers in roles.values() for kind in pools[workers["pool"]]]


def _fits(model: catalog.Model, instance_type: catalog.InstanceType, size: int) -> bool:
    """Whether so many devices of a node hold the weights and leave room, and share the work evenly."""
    accelerator = instance_type.accelerator
    return (
        accelerator is not None
        and runs_on({"weights": {}}, model.name, [instance_type])
        and instance_type.accelerator_count % size == 0
        and model.attention_heads % size == 0
        # A device holds whole blocks of weights that share a scale.
        and (not model.weight_block or model.feed_forward_size % (model.weight_block * size) == 0)
        and model.weight_bytes / size <= WEIGHT_SHARE * accelerator.memory_bytes
    )


@st.composite
def _pools(
    draw: Draw, name: str, types: list[catalog.InstanceType], sizes: list[int], zones: Sequence[str]
) -> Document:
    """Return a pool with room for workers of these sizes, and sometimes a spare node."""
    largest = max(instance_type.accelerator_count for instance_type in types) or 1
    maximum = max(1, math.ceil(sum(sizes) / largest)) + draw(st.integers(0, 1))
    efa = {"efa": st.booleans()} if _shares_interfaces(types, sizes) else {}
    pool: Document = {
        "name": name,
        "instanceTypes": [instance_type.name for instance_type in types],
        "nodes": {"max": maximum} | draw(_some(min=st.integers(0, maximum))),
    } | draw(
        _some(
            imageAcceleration=st.sampled_from(IMAGE_ACCELERATIONS),
            purchase=st.sampled_from(_purchases(types)),
            availabilityZone=st.sampled_from(list(zones)),
            labels=st.just({"example.com/team": "ads"}),
            taints=st.lists(
                st.fixed_dictionaries(
                    {"key": st.just("example.com/team")},
                    optional={
                        "value": st.just("ads"),
                        "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
                    },
                ),
                max_size=1,
            ),
            disk=st.fixed_dictionaries(
                {"sizeGib": st.integers(300, 16384)}, optional={"nodeCacheGib": st.just(0)}
            ),
            **efa,
        )
    )
    if pool.get("efa") and "availabilityZone" in pool:
        # Roles of one deployment may be on two pools with EFA, which does not cross zones.
        pool["availabilityZone"] = zones[0]
    if pool.get("imageAcceleration") == FROM_SNAPSHOT:
        # Weights from the Hub lie beside the images then, and not on NVMe.
        pool["disk"] = {"sizeGib": draw(st.integers(4096, 16384))}
    return pool


def _shares_interfaces(types: list[catalog.InstanceType], sizes: list[int]) -> bool:
    """Whether the one type has EFA, and every worker's share of it is a whole interface."""
    [first, *others] = types
    return (
        bool(first.efa_interfaces)
        and not others
        and all(size * first.efa_interfaces >= first.accelerator_count for size in sizes)
    )


def _purchases(types: list[catalog.InstanceType]) -> list[Document]:
    """Return the ways of paying for these types; a reservation is of one, a block of some families."""
    selections: list[Document] = [{"tags": {"team": "ads"}}]
    if len(types) == 1:
        selections.append({"id": "cr-0a1b2c3d"})
    kinds = ["reservation"]
    if all(instance_type.family in CAPACITY_BLOCK_FAMILIES for instance_type in types):
        kinds.append("capacityBlock")
    dated = {"id": "cr-0a1b2c3d", "starts": "2026-12-01T11:30:00Z", "ends": "2026-12-08T11:30:00Z"}
    blocks = [{"capacityBlock": dated}] if "capacityBlock" in kinds and len(types) == 1 else []
    return [
        {"onDemand": {}},
        {"spot": {}},
        {"spot": {"onDemandFallback": True}},
        *({kind: selection} for kind in kinds for selection in selections),
        *blocks,
    ]


@st.composite
def _models(draw: Draw, name: str, entry: str, region: str) -> Document:
    """Return a model without its deployments."""
    workload = _SHORT_WORKLOAD | draw(_some(sharedPrefixRatio=st.sampled_from([0.0, 0.5])))
    weights = draw(weights_of(entry, region, ACCOUNT))
    streamed = not weights.keys().isdisjoint({"s3", "mirror"})
    engine = draw(_some(engine=st.sampled_from(_STREAMING_ENGINES if streamed else _ENGINES)))
    routed = draw(st.sampled_from(_ROUTERS if "vllm" in engine.get("engine", "vllm") else _DYNAMO_ROUTERS))
    settings: Document = draw(
        _some(
            parsers=_some(reasoning=st.just("none"), toolCall=st.sampled_from(["none", "hermes"])),
            objectives=_some(
                timeToFirstTokenP90Ms=st.just(2000.0),
                timePerOutputTokenP90Ms=st.just(60.0),
                timeToFirstTokenMs=st.just({"p50": 900.0, "p95": 2500.0}),
                requestMs=st.just({"p99": 9000.0}),
            ),
            realTime=st.just({"deadlineMillis": 300.0, "fallbackPercent": 2.0}),
        )
    )
    named = draw(_spoken(name, entry, {**engine, **routed}))
    return {"name": name, "weights": weights, "workload": workload, **engine, **routed, **settings, **named}


def _spoken(name: str, entry: str, model: Document) -> st.SearchStrategy[Document]:
    """Return a second name in requests and a default for thinking, where the model can have them."""
    found: dict[str, st.SearchStrategy[Any]] = {}
    serves_two = "tensorrtLlm" not in model.get("engine", {})
    if serves_two and "prefixScorer" not in model.get("stack", {}).get("llmD", {}):
        found["publicName"] = st.just(f"Acme/{name}.1")
    written = catalog.model(entry).answer_format
    if written is None or catalog.answer_formats()[written].thinking == "switch":
        found["chat"] = st.fixed_dictionaries({"thinking": st.booleans()})
    return _some(**found)


def _kept(types: list[list[catalog.InstanceType]]) -> st.SearchStrategy[Document]:
    """Return KV cache in the nodes' memory, or none; some where any pool's nodes have it to spare."""
    if not all(_has_memory_to_spare(each) for pool in types for each in pool):
        return st.just({})
    return _some(kvCache=st.just({"hostMemoryGib": 1}))


def _keep_further(draw: Draw, model: Document) -> None:
    """Give a model's KV cache places behind the nodes' memory, or none."""
    further = _some(
        nvme=_some(gib=st.just(2)),
        shared=st.sampled_from([{"s3": each} for each in ({"expireDays": 1}, {"expireDays": 90}, {})]),
    )
    if model["weights"].get("huggingFace") and "revision" not in model["weights"]:
        further = _some(nvme=_some(gib=st.just(2)))
    model["kvCache"] |= draw(further)


def _may_read_images(model: Document, entry: str) -> bool:
    """Whether the model, its engine on its stack and its workers read images."""
    engine, stack = model.get("engine", {"vllm": {}}), model.get("stack", {"dynamo": {}})
    fetches_itself = "sglang" in engine if "dynamo" in stack else True
    whole = all("aggregated" in deployment for deployment in model["deployments"])
    vision = catalog.model(entry).vision
    return vision is not None and vision.limits_images and fetches_itself and whole


def _have_nvme_to_spare(types: list[list[catalog.InstanceType]], pools: list[Document]) -> bool:
    """Whether any pool's nodes have NVMe for KV cache, whatever weights lie beside it."""
    large = all((each.local_nvme_gb or 0) >= _AMPLE_NVME_GB for pool in types for each in pool)
    return large and all(pool.get("imageAcceleration") != FROM_SNAPSHOT for pool in pools)


def _has_memory_to_spare(instance_type: catalog.InstanceType) -> bool:
    """Whether its memory holds what its accelerators do, and the engine, LMCache and 1 GiB besides."""
    accelerator = instance_type.accelerator
    if accelerator is None:
        return False
    each = accelerator.memory_bytes / 2**20 + 27 * 1024
    return 0.85 * instance_type.memory_mib >= each * instance_type.accelerator_count
