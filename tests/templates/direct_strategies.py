"""Generated models without a router: each on a kind of nodes that its engine runs on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import inference_catalog as catalog
from inference_catalog import neuron
from inference_catalog.capabilities import attention_kind, engine_support, weight_format
from inference_catalog.catalogue import shipped
from inference_catalog.gguf_types import bits_per_weight, converted_classes, gguf_types, sized_for
from tests.templates.splits import WEIGHT_SHARE
from tests.templates.weight_strategies import COMMIT, MIRROR, own_image, token

Document = dict[str, Any]
Draw = Callable[..., Any]
_Types = list[catalog.InstanceType]

_WORKLOAD = {"inputTokens": 200, "outputTokens": 50, "peakRequestsPerSecond": 0.5}
#: Longest request of these workers: the mean of the workload fits.
_LENGTH = 1024
#: Below this, what the system and the server need besides the weights is no small part of a node.
_MIN_NODE_MIB = 16 * 1024
#: The images, and the largest model of a node or a copy of it.
_DISK = {"sizeGib": 1000}
_ROUTED: list[Document] = [
    {},
    {"stack": {"direct": {}}},
    {"stack": {"direct": {}}, "routing": {"leastRequests": {}}},
]


@dataclass(frozen=True)
class DirectModel:
    """A model with one deployment, and the pool that it has to itself."""

    model: Document
    """The model's section."""
    types: _Types
    """Instance types of its pool."""
    sizes: list[int]
    """Devices of each worker."""
    pool: Document
    """Keys of the pool that the model needs."""


@st.composite
def direct_models(draw: Draw, name: str, pool: str, region: str, account: str) -> DirectModel:
    """Return a model that the load balancer reaches without a router."""
    made = draw(
        st.one_of(_on_neuron(region, account), _on_processors(), _of_images(), _on_gpus(region, account))
    )
    replicas = draw(st.integers(1, 3))
    [size] = made.sizes
    workers = {"pool": pool, "replicas": replicas, "tensorParallelSize": size}
    section = {"name": name, **draw(st.sampled_from(_ROUTED)), **made.model}
    section["deployments"] = [{"name": "d-0", "aggregated": workers}]
    return DirectModel(section, made.types, [size] * replicas, made.pool)


def has_bfloat16(accelerator: catalog.Accelerator) -> bool:
    """Whether it is a GPU on which engines compute models as they are published."""
    capability = accelerator.compute_capability
    return capability is not None and engine_support()["vllm"].weights["bf16"].verdict(capability) == "runs"


def runs_on(section: Document, entry: str, types: list[catalog.InstanceType]) -> bool:
    """Whether the engine is not known to refuse the model's weights and attention on these GPUs."""
    [engine] = section.get("engine", {"vllm": {}})
    model, support = catalog.model(entry), engine_support()[engine]
    stored = section["weights"].get("type")
    verdicts = {
        answer.verdict
        for kind in types
        if (capability := kind.accelerator and kind.accelerator.compute_capability)
        for answer in (
            support.of_weights("bf16", "", capability),
            support.of_weights(
                stored or weight_format(model), "" if stored else model.quantisation_method, capability
            ),
            support.of_attention(attention_kind(model), "16bit", capability),
        )
    }
    return "refused" not in verdicts


@st.composite
def _on_neuron(draw: Draw, region: str, account: str) -> DirectModel:
    """Return a model on Inferentia or Trainium, copied from the Hub where the engine needs files."""
    route = neuron.neuron_routes()[draw(st.sampled_from(sorted(neuron.neuron_routes())))]
    found = [
        (entry, kind, size)
        for kind in catalog.instance_types().values()
        if kind.accelerator and kind.accelerator.name in route.accelerators
        for size in neuron.device_groups(kind) or range(1, kind.accelerator_count + 1)
        if kind.accelerator_count % size == 0
        for entry, model in catalog.models().items()
        if model.architecture in route.architectures and model.weight_type in route.weight_types
        if model.attention_heads % (size * kind.accelerator.cores) == 0
        and model.weight_bytes / size <= WEIGHT_SHARE * kind.accelerator.memory_bytes
    ]
    entry, kind, size = draw(st.sampled_from(found))
    model, accelerator = catalog.models()[entry], kind.accelerator.name if kind.accelerator else ""
    weights: Document = {"huggingFace": entry, "revision": COMMIT}
    if model.architecture in route.read_from_files or draw(st.booleans()):
        weights["mirror"] = {}
    if model.gated or draw(st.booleans()):
        weights["tokenSecretArn"] = token(region, account)
    engine: Document = {"args": {"max-model-len": _LENGTH}} | draw(
        _some(
            env=st.just({"NEURON_RT_LOG_LEVEL": "INFO"}), image=st.just(own_image("vllmNeuron", accelerator))
        )
    )
    section = {"weights": weights, "engine": {"vllmNeuron": engine}, "workload": _WORKLOAD}
    return DirectModel(section, [kind], [size], {"disk": _DISK})


@st.composite
def _on_processors(draw: Draw) -> DirectModel:
    """Return a model of GGUF on Graviton, on types with the same number of vCPUs."""
    kinds: dict[int, _Types] = {}
    for each in catalog.instance_types().values():
        if each.accelerator and each.accelerator.manufacturer == "cpu" and each.memory_mib >= _MIN_NODE_MIB:
            kinds.setdefault(each.vcpu, []).append(each)
    alike = st.lists(
        st.sampled_from(kinds[draw(st.sampled_from(sorted(kinds)))]), min_size=1, max_size=3, unique_by=_name
    )
    types = draw(alike)
    memory = min(each.memory_mib for each in types) * 2**20
    found = [
        (entry, kind)
        for entry, model in catalog.models().items()
        if model.architecture in converted_classes()
        for kind in gguf_types()
        # The output layer has more bits than the mean.
        if sized_for(model, kind)
        and model.weight_bytes * max(bits_per_weight().get(kind, 16), 8) / 16 <= WEIGHT_SHARE * memory
    ]
    entry, kind = draw(st.sampled_from(found))
    weights = {
        "huggingFace": f"{entry}-GGUF",
        "revision": COMMIT,
        "catalog": entry,
        "gguf": {"file": f"model-{kind}.gguf", "type": kind},
    }
    engine = draw(
        _some(
            args=st.just({"seed": 7}),
            env=st.just({"LLAMA_LOG_COLORS": "off"}),
            image=st.just(own_image("llamaCpp")),
        )
    )
    section = {"weights": weights, "engine": {"llamaCpp": engine}, "workload": _WORKLOAD}
    return DirectModel(section | draw(_some(kvCacheType=st.just("bf16"))), types, [1], {"disk": _DISK})


@st.composite
def _of_images(draw: Draw) -> DirectModel:
    """Return a model that makes images on GPUs."""
    found = [
        (entry, kind, size)
        for entry, model in catalog.pipelines().items()
        if model.pipeline
        for kind in catalog.instance_types().values()
        if kind.accelerator and has_bfloat16(kind.accelerator)
        for size in model.pipeline.tensor_parallel_sizes
        if kind.accelerator_count % size == 0
        and sum(part.loaded_bytes for part in (model.pipeline.text_encoder, model.pipeline.vae))
        + model.pipeline.transformer.loaded_bytes / size
        <= WEIGHT_SHARE * kind.accelerator.memory_bytes
    ]
    entry, kind, size = draw(st.sampled_from(found))
    engine = draw(
        _some(
            args=st.just({"log-stats": True}),
            env=st.just({"NCCL_DEBUG": "INFO"}),
            image=st.just(own_image("vllmOmni")),
        )
    )
    images = {"size": "512x768", "steps": 9} | draw(_some(perRequest=st.integers(1, 4)))
    section = {
        "weights": {"huggingFace": entry, "revision": COMMIT},
        "task": "images",
        "engine": {"vllmOmni": engine},
        "workload": {"images": images, "peakRequestsPerSecond": 0.01},
    }
    return DirectModel(section, [kind], [size], {"disk": _DISK})


@st.composite
def _on_gpus(draw: Draw, region: str, account: str) -> DirectModel:
    """Return a model on the own server of vLLM or SGLang, at the pinned release, a named one or one's own."""
    engine = draw(st.sampled_from(["vllm", "sglang"]))
    releases = shipped().engine_releases[engine]
    named = draw(st.sampled_from([None, *releases]))
    section = {"engine": {engine: draw(_with_release(named))}, "weights": {}}
    history = catalog.class_histories()[engine]
    version = releases[named or catalog.engine(engine).version].engine_version
    found = [
        (entry, kind)
        for kind in catalog.instance_types().values()
        if kind.accelerator and has_bfloat16(kind.accelerator)
        for entry, model in catalog.models().items()
        if model.weight_type == "bf16" and model.weight_bytes <= WEIGHT_SHARE * kind.accelerator.memory_bytes
        if history.has(model.architecture, version) and runs_on(section, entry, [kind])
    ]
    entry, kind = draw(st.sampled_from(found))
    weights = {"huggingFace": entry, "revision": COMMIT, "tokenSecretArn": token(region, account)}
    section |= {"weights": weights, "workload": _WORKLOAD, "stack": {"direct": {}}}
    # The published image of a release has nothing for EFA.
    return DirectModel(section, [kind], [1], {"efa": False} if named else {})


def _with_release(release: str | None) -> st.SearchStrategy[Document]:
    """Return an engine's section, with its published image of a release or one's own, or without."""
    if release is None:
        return st.just({})
    own = {"name": f"{MIRROR}/runtime:{release}", "release": release}
    return st.sampled_from([{"image": {"release": release}}, {"image": own}])


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=optional)


def _name(instance_type: catalog.InstanceType) -> str:
    return instance_type.name
