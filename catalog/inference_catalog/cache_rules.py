"""How much memory a request takes in an engine's cache, by the engine's rules and a model's list of layers.

vLLM: ``v1/core/kv_cache_utils.py``, ``v1/kv_cache_interface.py`` and ``_align_hybrid_block_size`` in
``platforms/interface.py`` of 0.31.0. SGLang: ``model_executor/pool_configurator.py``,
``mem_cache/kv_cache_configurator.py`` and ``arg_groups/overrides.py`` of 0.5.21. Other engines keep every
token of every layer: TensorRT-LLM publishes no other rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from inference_catalog.cached_layers import CachedLayers, LayerState
from inference_contracts.records import dataclass

if TYPE_CHECKING:
    from inference_catalog.model import Model

KV_CACHE_BYTES: Mapping[str, float] = MappingProxyType(
    {
        "auto": 2,
        "bf16": 2,
        "bfloat16": 2,
        "float16": 2,
        "f16": 2,
        "fp8": 1,
        "fp8_e4m3": 1,
        "fp8_e5m2": 1,
        # 32 values and a scale of two bytes (``block_q8_0`` of llama.cpp).
        "q8_0": 34 / 32,
    }
)
"""Bytes per cached value, by the engines' names of its type."""

STATE_BYTES: Mapping[str, int] = MappingProxyType({"float32": 4, "bfloat16": 2, "float16": 2})
"""Bytes of a value of a state, by the engines' names of its type."""

CacheRule = Literal["vllm", "sglang", "every token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUse:
    """How an engine is started, as far as its cache and its padding of weights depend on it."""

    rule: CacheRule = "every token"
    """Engine whose rules apply."""
    tensor_parallel_size: int = 1
    kv_type: str = "auto"
    """The engine's name of the type of the cache."""
    capability: str = ""
    """Compute capability of the device, such as ``9.0``; empty if it has none."""
    block: int = 0
    """Tokens of a block, if the engine is told so; 0: as few as the attention kernels take."""
    in_flight_tokens: int = 0
    """Tokens of the steps that run at a time. vLLM frees what a window no longer sees after its step."""
    prefix_caching: bool = True
    frees_windows: bool = True
    """`prefix_caching`, `frees_windows`: Whether the engine keeps prefixes for later requests, and whether it
    frees what a window no longer sees."""
    guessed_tokens: int = 0
    """Tokens that are guessed in a step. Each has a state of its own."""
    state_type: str = "auto"
    recurrent_type: str = "auto"
    """`state_type`, `recurrent_type`: Types of states, and of the part that is no convolution, if the engine
    is told so."""
    whole_experts: bool = False
    """Whether devices hold whole experts, as with expert parallelism, instead of a part of each."""
    kernels: str = ""
    """The engine's name of the kernels of attention that the user chose; empty if the engine chooses."""


def cache_type(model: Model, use: CacheUse) -> str:
    """Return the type of the cache: for ``auto``, what the checkpoint or the engine chooses.

    SGLang chooses FP8 for sparse latent attention from compute capability 10.0 on
    (``_dsa_kv_cache_dtype_default`` in ``arg_groups/overrides.py``). Both choose FP8 for DeepSeek V4
    (``_resolve_dsv4_kv_cache_dtype`` in ``models/deepseek_v4/attention.py`` of vLLM,
    ``_deepseek_v4_kv_cache_dtype`` in ``arg_groups/overrides.py`` of SGLang).
    """
    if use.kv_type != "auto":
        return use.kv_type
    if model.cache.page_alignment and use.rule != "every token":
        return "fp8"
    is_sparse = any(each.packed_bytes for each in model.cached_layers)
    if use.rule == "sglang" and is_sparse:
        return "fp8" if _generation(use) >= _BLACKWELL else "bf16"
    return model.cache.kv_type or "auto"


def entry_bytes(model: Model, layers: CachedLayers, use: CacheUse) -> float:
    """Return the bytes of an entry of a layer on one device; 0 for states.

    Sparse latent attention in FP8 has two layouts. On compute capability 10.x, engines choose kernels that
    take the plain one, elsewhere the packed one (``_canonicalize_sparse_mla_kv_cache_dtype`` in
    ``layers/attention/mla_attention.py`` of vLLM, ``calculate_mla_kv_cache_dim`` in
    ``kv_cache_configurator.py`` of SGLang). On 9.0, vLLM's packed layout is for the name ``fp8`` alone: the
    type of a checkpoint is ``fp8_e4m3``, which ``flashinfer_mla_sparse_sm90.py`` takes, in the plain layout.
    Kernels that a user chose have their own layout on every device. TensorRT-LLM's manager of this cache
    counts the plain one (``DSACacheManager.get_cache_bytes_per_token`` in
    ``_torch/attention_backend/sparse/dsa/cache_manager.py`` of its main at 0bbb76d2).
    """
    value = KV_CACHE_BYTES[cache_type(model, use)]
    if layers.packed_bytes and _is_packed(use, value):
        return layers.packed_bytes
    return layers.entry_bytes(value, use.tensor_parallel_size)


#: vLLM's kernels of sparse latent attention whose layout in FP8 is the packed one.
_PACKING_KERNELS = ("FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE_SM120")


def _is_packed(use: CacheUse, value_bytes: float) -> bool:
    """Whether latent vectors have the packed layout, in layers of sparse attention."""
    generation, is_small = _generation(use), value_bytes < KV_CACHE_BYTES["auto"]
    if use.rule == "every token":
        return False
    if use.rule == "sglang":
        return is_small and generation not in _PLAIN_LAYOUT
    if generation == _CONSUMER_BLACKWELL:
        return True  # its kernels have no other layout, whatever the type
    if use.kernels:
        return is_small and use.kernels in _PACKING_KERNELS
    if generation == _HOPPER:
        return use.kv_type == "fp8"
    return is_small and generation not in _PLAIN_LAYOUT


def token_bytes(model: Model, use: CacheUse) -> float:
    """Return the bytes that each further token takes on one device if nothing is freed."""
    return sum(
        each.count * entry_bytes(model, each, use) / each.tokens_per_entry
        for each in model.cached_layers
        if each.kind != "cross"
    )


def state_bytes(model: Model, use: CacheUse) -> int:
    """Return the bytes of one state in all layers that have one, on one device."""
    layers = (_typed(each, use) for each in model.cached_layers)
    return sum(each.count * each.state_bytes(use.tensor_parallel_size) for each in layers)


def _typed(layers: CachedLayers, use: CacheUse) -> CachedLayers:
    """Return layers whose states have the types that the engine is told.

    The first tensor of a state is that of a convolution. The others have its type unless they have one of
    their own (``MambaStateDtypeCalculator`` in ``layers/mamba/mamba_utils.py`` of vLLM). SGLang only has a
    type of the others: 32 bits unless the model's file sets it (``mamba2_state_dtype`` in
    ``configs/mamba_utils.py``).
    """
    if not layers.states:
        return layers
    first, *others = layers.states
    changed = STATE_BYTES.get(use.state_type, first.bytes_per_value)

    def typed(state: LayerState) -> LayerState:
        own = changed if state.bytes_per_value == first.bytes_per_value else state.bytes_per_value
        if use.rule == "sglang" and not state.set_by_model:
            own = STATE_BYTES["float32"]
        return replace(state, bytes_per_value=STATE_BYTES.get(use.recurrent_type, own))

    return replace(layers, states=(replace(first, bytes_per_value=changed), *map(typed, others)))


def request_bytes(model: Model, use: CacheUse, tokens: int) -> int:
    """Return the bytes that one request of so many tokens takes of a device's cache, as the engine admits it.

    Parameters
    ----------
    model
        The model as devices hold it.
    use
        How the engine is started.
    tokens
        Tokens of prompt and answer.
    """
    return math.ceil(_RULES[use.rule](model, use, tokens))


def mean_token_bytes(model: Model, use: CacheUse, tokens: float) -> float:
    """Return the bytes that a running request of so many tokens holds, per token.

    Where every token takes as much as any other, block by block, it is this number: half a block of a few
    tokens more or less does not matter.
    """
    if _is_linear(model, use) or tokens <= 0:
        return token_bytes(model, use)
    return _RULES[use.rule](model, replace(use, in_flight_tokens=0), tokens) / tokens


def _is_linear(model: Model, use: CacheUse) -> bool:
    """Whether every token takes as much as any other."""
    layers = _caching(model, use)
    if any(each.kind in ("state", "cross") for each in layers):
        return False
    if use.rule == "vllm":
        return _is_one_group(layers)
    return use.rule != "sglang" or model.architecture not in _WINDOW_POOLS


def pool_block_bytes(model: Model, use: CacheUse) -> int:
    """Return the bytes that the pools keep for themselves: a block with vLLM, a state with SGLang, else 0."""
    if use.rule == "sglang":
        return math.ceil(_pooled_state_bytes(model, use))
    if use.rule != "vllm" or not model.cached_layers:
        return 0
    return max((each.bytes for each in _groups(model, use)), default=0)


_CONSUMER_BLACKWELL = 12
_HOPPER = 9
_BLACKWELL = 10
_PLAIN_LAYOUT = (10, 11)


def _generation(use: CacheUse) -> int:
    return int(use.capability.partition(".")[0] or 0)


def _every_token(model: Model, use: CacheUse, tokens: float) -> float:
    """Every layer keeps every token, and each request one state."""
    written = sum(
        each.count * each.window * entry_bytes(model, each, use)
        for each in model.cached_layers
        if each.kind == "cross"
    )
    return tokens * token_bytes(model, use) + written + state_bytes(model, use)


# vLLM.


@dataclass(frozen=True, slots=True)
class _Pages:
    """Layers of one group: they have the same table of blocks."""

    layers: CachedLayers
    """The first of them, which decides how many blocks a request takes."""
    block: int
    """Tokens of a block."""
    bytes: int
    """Bytes of a block in all layers of the group."""
    split: int = 1
    """Groups that are like this one."""


def _vllm(model: Model, use: CacheUse, tokens: float) -> float:
    """Return whole blocks of the pool: each group takes its own, and all are as large as the largest."""
    groups = _groups(model, use)
    blocks = sum(each.split * _blocks(model, each, use, math.ceil(tokens)) for each in groups)
    return max((each.bytes for each in groups), default=0) * blocks


def _blocks(model: Model, pages: _Pages, use: CacheUse, tokens: int) -> int:
    """Return the blocks that a request takes in one group (``max_admission_blocks_per_request``)."""
    window = pages.layers.window
    if pages.layers.kind == "state":
        states = model.cache.states_per_request if use.prefix_caching else 1
        return states + use.guessed_tokens
    if pages.layers.kind == "window" and use.frees_windows:
        # The window may begin inside a block.
        return math.ceil(min(window - 1 + use.in_flight_tokens, tokens) / pages.block) + 1
    if pages.layers.kind == "chunk" and use.frees_windows:
        return math.ceil(min(window + use.in_flight_tokens, tokens) / pages.block)
    if pages.layers.kind == "cross":
        # vLLM has room for as many entries of the encoder as it computes tokens in a step.
        return math.ceil(max(window, use.in_flight_tokens // _BATCHES) / pages.block)
    return math.ceil(tokens / pages.block)


_BATCHES = 2
#: vLLM makes groups as large as the larger kind of layers below this ratio.
_UNEVEN = 1.5
#: Blocks of latent attention beside states are a multiple of this (``_align_hybrid_block_size``).
_LATENT_BESIDE_STATES = 128


def _is_one_group(layers: Sequence[CachedLayers]) -> bool:
    """Whether all layers need as many blocks per request (``UniformTypeKVCacheSpecs.is_uniform_type``)."""
    if len({each.block for each in layers}) > 1:
        return False
    return all(each.kind in ("full", "latent") for each in layers)


def _alike(layers: CachedLayers) -> tuple[object, ...]:
    """Return what layers of one group have in common."""
    if layers.kind in ("full", "latent"):
        return ("full", layers.block)
    return (layers.kind, layers.block, layers.window)


def _groups(model: Model, use: CacheUse) -> list[_Pages]:
    """Divide the layers into groups as ``get_kv_cache_groups`` does."""
    layers = _caching(model, use)
    if not layers:
        return []
    layers = _with_room_for_states(model, use, layers)
    pages = [_page(model, each, use) for each in layers]
    here = _held(model)
    if len({_alike(each) for each in layers}) == 1:
        return [_Pages(layers[0], layers[0].block, sum(p * n for p, n in zip(pages, here, strict=True)))]
    if model.cache.page_alignment:
        return _packed(layers, pages, here)
    latent = [page for each, page in zip(layers, pages, strict=True) if each.kind == "latent"]
    if use.frees_windows and any(max(pages) % page for page in latent):
        # Pages of latent vectors cannot be padded: vLLM then keeps every token in every layer.
        return _groups(model, replace(use, frees_windows=False))
    return _evenly(layers, pages, here)


def _held(model: Model) -> list[int]:
    """Return how many of the layers that ``_caching`` returns this stage holds."""
    own = [each.count for each in model.cached_layers if each.kind != "none"]
    return own + [0 for each in model.cached_elsewhere if each.kind != "none"]


def _caching(model: Model, use: CacheUse) -> list[CachedLayers]:
    """Return the layers with memory of their own, with the blocks and kinds that the engine gives them.

    vLLM makes groups of the layers of all stages (``get_kv_cache_configs``).
    """
    found = []
    # A user's block of another size, or a choice of kernels, rules vLLM's joined kernels out.
    is_usual = _generation(use) == _BLACKWELL and not use.block and not use.kernels
    least = model.cache.blackwell_block if is_usual else use.block
    for each in (*model.cached_layers, *model.cached_elsewhere):
        if each.kind == "none":
            continue
        kind = "full" if each.kind in ("window", "chunk") and not use.frees_windows else each.kind
        block = each.block if model.cache.page_alignment else max(each.block, least)
        found.append(replace(_typed(each, use), kind=kind, block=block))
    return found


def _page(model: Model, layers: CachedLayers, use: CacheUse) -> int:
    """Return the bytes of a block in one layer."""
    if layers.kind == "state":
        return layers.state_bytes(use.tensor_parallel_size, use.guessed_tokens)
    size = math.ceil(layers.block // layers.tokens_per_entry * entry_bytes(model, layers, use))
    alignment = model.cache.page_alignment or 1
    return math.ceil(size / alignment) * alignment


def _with_room_for_states(model: Model, use: CacheUse, layers: list[CachedLayers]) -> list[CachedLayers]:
    """Return the layers with blocks of attention that are large enough for a state.

    The first attention layers decide: every block gets so many tokens that its page holds the largest state.
    """
    sizes = (each.state_bytes(use.tensor_parallel_size, use.guessed_tokens) for each in layers)
    state = max(sizes, default=0)
    attention = next((each for each in layers if each.kind in ("full", "latent")), None)
    if not state or attention is None:
        return layers
    is_latent = attention.kind == "latent"
    smallest = max(attention.block, _LATENT_BESIDE_STATES) if is_latent else attention.block
    needed = state / (smallest * entry_bytes(model, attention, use))
    block = smallest * max(1, math.ceil(needed))
    return [each if each.kind == "state" else replace(each, block=block) for each in layers]


def _evenly(layers: list[CachedLayers], pages: list[int], here: list[int]) -> list[_Pages]:
    """Make all pages equal, and groups of the same number of layers.

    Smaller pages get longer blocks (``unify_kv_cache_spec_page_size``). The groups are as large as the
    smallest kind of layers, or as the largest if both are nearly as many; the last group of each kind may
    have padding (``_get_kv_cache_groups_uniform_page_size``). Layers go to the groups of their kind in turn,
    so a stage has a part of each.
    """
    page = max(pages)
    kinds: dict[tuple[object, ...], tuple[CachedLayers, int, int]] = {}
    for each, own, held in zip(layers, pages, here, strict=True):
        longer = page // own if each.kind != "state" and page % own == 0 else 1
        grown = replace(each, block=each.block * longer)
        key = (*_alike(grown), each.kind, own)
        first, count, before = kinds.get(key, (grown, 0, 0))
        kinds[key] = (first, count + each.count, before + held)
    counts = [count for _, count, _ in kinds.values()]
    few, many = min(counts), max(counts)
    size = many if many < few * _UNEVEN else few
    widest = max(math.ceil(held / math.ceil(count / size)) for _, count, held in kinds.values())
    return [
        _Pages(first, first.block, page * widest, math.ceil(count / size))
        for first, count, _ in kinds.values()
    ]


def _packed(layers: list[CachedLayers], pages: list[int], here: list[int]) -> list[_Pages]:
    """Pack pages of different sizes side by side into one block (``_get_packed_kv_cache_groups``).

    Layers that need as many blocks are in one bucket. Buckets with as many layers of each size of pages are
    split into groups that repeat one pattern.
    """
    buckets: dict[tuple[object, ...], list[tuple[CachedLayers, int, int]]] = {}
    for each, page, held in zip(layers, pages, here, strict=True):
        buckets.setdefault(_alike(each), []).append((each, page, held))
    counted = [_by_page((page, each.count) for each, page, _ in bucket) for bucket in buckets.values()]
    even = [max(sizes.values()) for sizes in counted if len(set(sizes.values())) == 1]
    mixed = [max(s.values()) for s in counted if len(set(s.values())) == 1 and len(s) > 1]
    repeats = _least_padding(even, max(mixed)) if mixed else 0
    found = []
    for bucket, sizes in zip(buckets.values(), counted, strict=True):
        is_even = len(set(sizes.values())) == 1
        split = math.ceil(max(sizes.values()) / repeats) if repeats and is_even else 1
        own = _by_page((page, held) for _, page, held in bucket)
        width = sum(math.ceil(count / split) * page for page, count in own.items())
        found.append(_Pages(bucket[0][0], bucket[0][0].block, width, split))
    return found


def _by_page(layers: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the number of layers by the bytes of a page, of which they have one each."""
    counts: dict[int, int] = {}
    for page, count in layers:
        counts[page] = counts.get(page, 0) + count
    return counts


def _least_padding(values: Sequence[int], least: int) -> int:
    """Return the size of groups with the fewest empty places, or the largest such (``_approximate_gcd``)."""
    sizes = range(least, max(*values, least) + 1)
    return min(sizes, key=lambda size: (sum(-value % size for value in values), -size))


# SGLang.

#: Model classes with a pool of their own for layers with a window or chunks (``is_hybrid_swa_model`` in
#: ``configs/model_config.py``). Others keep every token in every layer.
_WINDOW_POOLS = frozenset(
    {
        "DeepseekV4ForCausalLM",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "GptOssForCausalLM",
        "GraniteMoeSWAForCausalLM",
        "GraniteSWAForCausalLM",
        "LagunaForCausalLM",
        "Llama4ForConditionalGeneration",
        "MellumForCausalLM",
        "MiMoV2FlashForCausalLM",
        "MiMoV2ForCausalLM",
        "Step3p5ForCausalLM",
    }
)
#: Classes whose pools have places in all layers, also in those that read what earlier layers keep.
_PLACES_IN_ALL_LAYERS = frozenset({"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"})
#: Tokens of the pool for windows per token of the pool for the other layers; of compressed attention.
_WINDOW_RATIO, _COMPRESSED_RATIO = 0.8, 0.1
#: Memory of states per memory of the KV cache (``mamba_full_memory_ratio``).
_STATE_RATIO = 0.9
#: States per request with prefixes: three, and two more while steps overlap (``_calculate_mamba_ratio``).
_STATES_WITH_PREFIXES = 5
#: Tokens of a page of compressed attention.
_COMPRESSED_PAGE = 256
#: A ring of raw values of at most so many tokens is kept per page of the windows, a longer one per request.
_SHORT_RING = 32


def _sglang(model: Model, use: CacheUse, tokens: float) -> float:
    """Return the memory that the pools need so that the request finds its part in each.

    All pools are divided by fixed ratios before a request arrives, so the pool that is used up first decides.
    """
    if not any(each.kind == "state" for each in model.cached_layers):
        return tokens * _pooled_token_bytes(model, use, tokens)
    states = _STATES_WITH_PREFIXES if use.prefix_caching else 1
    return max(
        states * _pooled_state_bytes(model, use),
        tokens * _pooled_token_bytes(model, use, tokens) * (1 + _STATE_RATIO),
    )


def _pooled_state_bytes(model: Model, use: CacheUse) -> float:
    """Return the bytes of all pools together per state, of which each guessed token has one."""
    return state_bytes(model, use) * (1 + use.guessed_tokens) * (1 + _STATE_RATIO) / _STATE_RATIO


def _pooled_token_bytes(model: Model, use: CacheUse, tokens: float) -> float:
    """Return the bytes per token of a request, which has a part of each pool of tokens.

    Layers that only read have windows as often as the others.
    """
    keeping = sum(each.count for each in model.cached_layers if each.kind != "none")
    if keeping and model.architecture in _PLACES_IN_ALL_LAYERS:
        every = sum(each.count for each in model.cached_layers)
        return _kept_token_bytes(model, use, tokens) * every / keeping
    return _kept_token_bytes(model, use, tokens)


def _kept_token_bytes(model: Model, use: CacheUse, tokens: float) -> float:
    """Return what `_pooled_token_bytes` does, of the layers that keep something."""
    windows = [each for each in model.cached_layers if each.kind in ("window", "chunk")]
    others = sum(
        each.count * entry_bytes(model, each, use) / each.tokens_per_entry
        for each in model.cached_layers
        if each.kind in ("full", "latent")
    )
    if not windows or not others or model.architecture not in _WINDOW_POOLS:
        return token_bytes(model, use)
    is_compressed = bool(model.cache.page_alignment)
    ratio = _COMPRESSED_RATIO if is_compressed else _WINDOW_RATIO
    fixed = inside = 0.0
    for each in windows:
        size = each.count * entry_bytes(model, each, use)
        if not is_compressed or each.block >= _COMPRESSED_PAGE // 4:
            inside += size
        elif each.window <= _SHORT_RING:
            inside += size * each.window / _COMPRESSED_PAGE
        else:
            fixed += size * each.window
    kept = min(tokens, max(each.window for each in windows))
    pool = others + ratio * inside
    return max(pool, pool * kept / (ratio * tokens)) + fixed / max(1.0, tokens)


_RULES: Mapping[CacheRule, Callable[[Model, CacheUse, float], float]] = MappingProxyType(
    {"every token": _every_token, "vllm": _vllm, "sglang": _sglang}
)
