"""Valid blueprints, drawn from the catalogue and the blueprint's types.

Every draw is valid by construction, by arithmetic of its own and not by asking the loader: where the loader
refuses one, either this file or a rule is wrong, and a test says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from inference_blueprints import catalog
from inference_blueprints.spec.rules.cluster import KUBERNETES_VERSIONS
from inference_blueprints.spec.rules.purchases import CAPACITY_BLOCK_FAMILIES

Document = dict[str, Any]
Draw = Callable[..., Any]

PLATFORM = "try"
_ACCOUNT = "111122223333"
_UUID = "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"

#: Share of a device that weights may take: what is left holds one short request on every device of the
#: catalogue, whatever activations and the engine's own reserve come to.
_WEIGHT_SHARE = 0.6
_SIZES = (1, 2, 4, 8)
_FROM_SNAPSHOT = {"ebsSnapshot": {"id": "snap-0a1b2c3d"}}
_IMAGE_ACCELERATIONS = [{"sociParallelPull": {}}, {"ebsSnapshot": {}}, _FROM_SNAPSHOT]
_SHORT_WORKLOAD = {"inputTokens": 200, "outputTokens": 50, "peakRequestsPerSecond": 0.5}


@st.composite
def blueprints(draw: Draw) -> Document:
    """Return a valid blueprint, as YAML would give it."""
    region = draw(st.sampled_from(sorted(catalog.regions())))
    environment = draw(_environments(region))
    network = draw(_networks(region, environment))
    zones = environment.get("availabilityZones") or catalog.regions()[region][:3]
    pools, models = draw(_serving(region, zones))
    eks = {"version": draw(st.sampled_from(KUBERNETES_VERSIONS))} | draw(
        _some(endpointAccess=st.sampled_from(["private", "publicAndPrivate"]))
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
        },
    }


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """Return a mapping in which each key is there or not."""
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def _environments(draw: Draw, region: str) -> Document:
    """Return where it is deployed: in some zones of the region, or in those that the catalogue chooses."""
    zones = catalog.regions()[region]
    return {"region": region} | draw(
        _some(
            account=st.just(_ACCOUNT),
            availabilityZones=st.lists(
                st.sampled_from(zones), min_size=2, max_size=min(4, len(zones)), unique=True
            ),
            dataRemoval=st.sampled_from(["retain", "destroy"]),
            tags=st.dictionaries(
                st.sampled_from(["team", "cost-centre", "Owner"]), st.sampled_from(["search", "7", "a b:c"])
            ),
        )
    )


@st.composite
def _networks(draw: Draw, region: str, environment: Document) -> Document:
    """Return how it is reached: through a new VPC or an existing one, over HTTP or HTTPS."""
    network: Document = draw(
        _some(
            sourceCidrs=st.lists(
                st.sampled_from(["10.0.0.0/8", "192.168.0.0/24", "0.0.0.0/0"]), min_size=1, unique=True
            ),
            domain=st.just("models.example.com"),
        )
    )
    if "domain" in network and draw(st.booleans()):
        network["certificateArn"] = f"arn:aws:acm:{region}:{_ACCOUNT}:certificate/{_UUID}"
    zones = environment.get("availabilityZones")
    if zones and draw(st.booleans()):
        subnets = [f"subnet-0a1b2c{index:02}" for index in range(len(zones))]
        network["existing"] = {
            "vpcId": "vpc-0a1b2c3d",
            "vpcCidr": "172.31.0.0/16",
            "privateSubnetIds": subnets,
        }
    elif draw(st.booleans()):
        network["cidr"] = f"10.16.0.0/{draw(st.integers(16, 20))}"
    return network


@st.composite
def _serving(draw: Draw, region: str, zones: Sequence[str]) -> tuple[list[Document], list[Document]]:
    """Return pools, and models of which each deployment has room on one of them."""
    chosen = [draw(_instance_types(accelerated=True)) for _ in range(draw(st.integers(1, 3)))]
    sizes: list[list[int]] = [[] for _ in chosen]
    models = []
    for index in range(draw(st.integers(1, 3))):
        name, placements = draw(st.sampled_from(_fitting_models(chosen)))
        deployments = []
        for place in range(draw(st.integers(1, 2))):
            pool, size = draw(st.sampled_from(placements))
            replicas = draw(st.integers(1, 3))
            sizes[pool] += [size] * replicas
            workers = {"pool": f"pool-{pool}", "replicas": replicas, "tensorParallelSize": size}
            deployments.append({"name": f"d-{place}", "aggregated": workers})
        models.append(draw(_models(f"model-{index}", name, region)) | {"deployments": deployments})
    pools = [draw(_pools(f"pool-{index}", types, sizes[index], zones)) for index, types in enumerate(chosen)]
    if draw(st.booleans()):
        pools.append(draw(_pools("unused", draw(_instance_types(accelerated=False)), [], zones)))
    return pools, models


@st.composite
def _instance_types(draw: Draw, *, accelerated: bool) -> list[catalog.InstanceType]:
    """Return interchangeable types: of one NVIDIA accelerator that a model fits, or of anything else."""
    kinds: dict[tuple[str, str], list[catalog.InstanceType]] = {}
    for instance_type in catalog.instance_types().values():
        accelerator = instance_type.accelerator
        if accelerated == bool(accelerator and accelerator.manufacturer == "nvidia"):
            kind = (accelerator.name if accelerator else "", instance_type.architecture)
            kinds.setdefault(kind, []).append(instance_type)
    types = kinds[draw(st.sampled_from(sorted(kinds)))]
    return draw(st.lists(st.sampled_from(types), min_size=1, max_size=3, unique_by=lambda each: each.name))


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


def _fits(model: catalog.Model, instance_type: catalog.InstanceType, size: int) -> bool:
    """Whether so many devices of a node hold the weights and leave room, and share the work evenly."""
    accelerator = instance_type.accelerator
    return (
        accelerator is not None
        and instance_type.accelerator_count % size == 0
        and model.attention_heads % size == 0
        # Of FP8 weights a device holds whole blocks.
        and (model.weight_type != "fp8" or model.feed_forward_size % (128 * size) == 0)
        and model.weight_bytes / size <= _WEIGHT_SHARE * accelerator.memory_bytes
    )


@st.composite
def _pools(
    draw: Draw, name: str, types: list[catalog.InstanceType], sizes: list[int], zones: Sequence[str]
) -> Document:
    """Return a pool with room for workers of these sizes, and sometimes a spare node."""
    largest = max(instance_type.accelerator_count for instance_type in types) or 1
    most = max(1, math.ceil(sum(sizes) / largest)) + draw(st.integers(0, 1))
    efa = {"efa": st.booleans()} if _shares_interfaces(types, sizes) else {}
    pool: Document = {
        "name": name,
        "instanceTypes": [instance_type.name for instance_type in types],
        "nodes": {"max": most} | draw(_some(min=st.integers(0, most))),
    } | draw(
        _some(
            imageAcceleration=st.sampled_from(_IMAGE_ACCELERATIONS),
            purchase=st.sampled_from(_purchases(types)),
            availabilityZone=st.sampled_from(list(zones)),
            labels=st.just({"example.com/team": "ads"}),
            taints=st.just([{"key": "example.com/team", "value": "ads"}]),
            disk=st.fixed_dictionaries({"sizeGib": st.integers(300, 16384)}),
            **efa,
        )
    )
    if pool.get("imageAcceleration") == _FROM_SNAPSHOT:
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
    return [
        {"onDemand": {}},
        {"spot": {}},
        {"spot": {"onDemandFallback": True}},
        *({kind: selection} for kind in kinds for selection in selections),
    ]


@st.composite
def _models(draw: Draw, name: str, entry: str, region: str) -> Document:
    """Return a model without its deployments."""
    return {"name": name, "weights": draw(_weights(entry, region)), "workload": _SHORT_WORKLOAD} | draw(
        _some(
            routing=st.sampled_from([{"kvAware": {}}, {"roundRobin": {}}]),
            engine=st.sampled_from([{"vllm": {}}, {"vllm": {"args": {"max-model-len": 2048}}}]),
            stack=st.just({"dynamo": {}}),
            objectives=_some(timeToFirstTokenP90Ms=st.just(2000.0), timePerOutputTokenP90Ms=st.just(60.0)),
        )
    )


@st.composite
def _weights(draw: Draw, entry: str, region: str) -> Document:
    """Return where the weights come from: S3, or the Hub with a token where the model is gated."""
    if draw(st.booleans()):
        return {"s3": f"s3://acme-models/{entry}/", "catalog": entry}
    token = f"arn:aws:secretsmanager:{region}:{_ACCOUNT}:secret:hub-AbCdEf"
    weights = {"huggingFace": entry} | draw(_some(revision=st.just("main")))
    if catalog.models()[entry].gated or draw(st.booleans()):
        weights["tokenSecretArn"] = token
    return weights
