"""What the layers of a model cache for a request: groups of equal layers, and rules of the model as a whole.

The list is data of a model. How an engine turns it into memory is in ``cache_rules``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, Literal, get_args

from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

LayerKind = Literal["full", "window", "chunk", "latent", "state", "cross", "none"]
"""``full``: keys and values of every token; ``window``: of the last tokens; ``chunk``: of the tokens since
the last border of a chunk; ``latent``: one vector per token or per several tokens, such as the keys of an
indexer too; ``state``: one state per request, whatever its length; ``cross``: keys and values of what an
encoder wrote; ``none``: nothing, or what an earlier layer keeps."""


class LayersError(UserError):
    """A list of layers is wrong. The message has one line per problem."""


@dataclass(frozen=True, slots=True)
class LayerState:
    """One tensor of the state that a layer of Mamba or of linear attention keeps per request."""

    values: int
    """Values that tensor parallelism splits, of all devices together."""
    bytes_per_value: int
    groups: int = 0
    group_values: int = 0
    """`groups`, `group_values`: Groups of further values, and the values of one. Devices beyond the number of
    groups hold a copy (``extra_groups_for_head_shards`` in ``mamba_utils.py`` of vLLM 0.31.0)."""
    columns: int = 0
    """Columns of the values, if each token that is guessed in a step adds one in vLLM: those of a convolution
    (``num_spec`` in ``mamba_utils.py``). 0 if none is added."""
    set_by_model: bool = False
    """Whether the model's file sets a type of 16 bits as ``mamba_ssm_dtype``. Without it, SGLang takes 32."""

    def bytes_on_device(self, tensor_parallel_size: int, guessed_tokens: int = 0) -> int:
        """Return its bytes on one of so many devices, with so many more columns."""
        own = math.ceil(self.values / tensor_parallel_size)
        shared = math.ceil(self.groups / tensor_parallel_size) * self.group_values
        more = (own + shared) // self.columns * guessed_tokens if self.columns else 0
        return (own + shared + more) * self.bytes_per_value


@dataclass(frozen=True, slots=True)
class CachedLayers:
    """Layers of one model that cache the same. A layer that caches two things is in two groups."""

    count: int
    kind: LayerKind
    kv_heads: int = 0
    head_size: int = 0
    value_size: int = 0
    """`kv_heads`, `head_size`, `value_size`: KV heads, values of a key, and values of a value (0: as many as
    of a key). A latent vector has no heads: `head_size` is its size."""
    window: int = 0
    """Tokens of a window or a chunk; of ``cross``, the most entries that the encoder writes."""
    tokens_per_entry: int = 1
    """Tokens that share one entry of the cache."""
    fixed_bytes: int = 0
    """Bytes of an entry that are the same for every type of the KV cache, such as the keys of an indexer.
    Every device holds such an entry whole. 0: the bytes follow from the sizes and the type."""
    packed_bytes: int = 0
    """Bytes of an entry in the layout ``fp8_ds_mla`` of sparse latent attention; 0 without this layout."""
    block: int = 16
    """Tokens of the smallest block that the attention kernel takes."""
    states: tuple[LayerState, ...] = ()
    """Tensors of a state; empty for the other kinds."""
    replicated: bool = False
    """Whether every device holds all heads or the whole state. Latent vectors are never split."""
    own: bool = True
    """Whether these are layers of their own. False for what layers of another group cache in addition."""

    def entry_bytes(self, value_bytes: float, tensor_parallel_size: int) -> float:
        """Return the bytes of an entry on one of so many devices; 0 for states.

        Parameters
        ----------
        value_bytes
            Bytes of a value in the KV cache.
        tensor_parallel_size
            Devices that share each layer. A device holds its share of the heads, and at least one.
        """
        if self.fixed_bytes or self.kind in ("state", "none"):
            return self.fixed_bytes
        if self.kind == "latent":
            return self.head_size * value_bytes
        heads = self.kv_heads if self.replicated else max(1, math.ceil(self.kv_heads / tensor_parallel_size))
        return heads * (self.head_size + (self.value_size or self.head_size)) * value_bytes

    def state_bytes(self, tensor_parallel_size: int, guessed_tokens: int = 0) -> int:
        """Return the bytes of the state of one request in one layer, on one of so many devices.

        Parameters
        ----------
        tensor_parallel_size
            The devices.
        guessed_tokens
            Tokens that vLLM guesses in a step; 0 for other engines.
        """
        size = 1 if self.replicated else tensor_parallel_size
        return sum(each.bytes_on_device(size, guessed_tokens) for each in self.states)


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """What a model decides about its cache as a whole."""

    kv_type: str = ""
    """Type that engines take for ``auto`` because the checkpoint sets it, such as ``fp8``; empty: 16 bits."""
    states_per_request: int = 2
    """States of each layer that vLLM reserves for a request with prefix caching."""
    page_alignment: int = 0
    """Bytes to whose multiple each page is rounded up; 0 if pages are not aligned."""
    blackwell_block: int = 0
    """Tokens of the smallest block that vLLM's kernels take on compute capability 10.x; 0: as the layers'."""


def with_further_layers(layers: Sequence[CachedLayers], count: int) -> tuple[CachedLayers, ...]:
    """Return the list with layers for multi-token prediction, which attend to every token.

    Parameters
    ----------
    layers
        The layers without them.
    count
        How many they are. They cache what the first layers of full or latent attention cache.
    """
    like = next((each for each in layers if each.own and each.kind in ("full", "latent")), None)
    if like is None:
        return tuple(layers)
    return tuple(
        replace(each, count=each.count + count) if each is like or not each.own else each for each in layers
    )


_NAMES = {"kvHeads": "kv_heads", "headSize": "head_size", "valueSize": "value_size"}
_CAMEL = {
    **{name: name for name in ("count", "kind", "window", "block", "states", "replicated", "own", "values")},
    "groups": "groups",
    "columns": "columns",
    **_NAMES,
    "tokensPerEntry": "tokens_per_entry",
    "fixedBytes": "fixed_bytes",
    "packedBytes": "packed_bytes",
    "bytesPerValue": "bytes_per_value",
    "groupValues": "group_values",
    "setByModel": "set_by_model",
}
_SNAKE = {snake: camel for camel, snake in _CAMEL.items()}
#: Largest number of a field, and of layers in a group.
_MAXIMUM, _MOST_LAYERS = 10**9, 10**4
#: Fields that each kind must have.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "full": ("kv_heads", "head_size"),
    "window": ("window",),
    "chunk": ("kv_heads", "head_size", "window"),
    "latent": (),
    "state": ("states",),
    "cross": ("kv_heads", "head_size", "window"),
    "none": (),
}


def as_data(layers: Sequence[CachedLayers]) -> list[dict[str, Any]]:
    """Return a list of layers as data, without the fields that have their default."""
    return [_without_defaults(each) for each in layers]


def _without_defaults(record: Any) -> dict[str, Any]:
    found = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if field.default is MISSING or value != field.default:
            is_list = isinstance(value, tuple)
            found[field.name] = [_without_defaults(each) for each in value] if is_list else value
    return found


def read_layers(value: object, place: str = "layers", *, camel: bool = False) -> tuple[CachedLayers, ...]:
    """Return the layers that a list of objects describes.

    Parameters
    ----------
    value
        The list, as ``as_data`` returns it.
    place
        Its path, for messages.
    camel
        Whether the names of fields are those of a user's file, such as ``kvHeads``.

    Raises
    ------
    LayersError
        If a field is missing, unknown or wrong. The message has one line per problem.
    """
    problems: list[str] = []
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        shown = "an empty list" if value == [] else type(value).__name__
        raise LayersError(f"{place}: got {shown}, must be a list of groups of layers, at least one")
    layers = [_group(each, f"{place}[{index}]", problems, camel=camel) for index, each in enumerate(value)]
    found = tuple(each for each in layers if each is not None)
    if not problems and not any(each.own for each in found):
        problems.append(f"{place}: got only groups with own: false; at least one must be layers of its own")
    if not problems and all(each.kind == "none" for each in found):
        problems.append(f"{place}: got only groups of kind none; at least one must cache something")
    if problems:
        raise LayersError("\n".join(problems))
    return found


def _group(value: object, place: str, problems: list[str], *, camel: bool) -> CachedLayers | None:
    """Return one group; None with problems if it is wrong."""
    before = len(problems)
    given = _fields_of(value, CachedLayers, place, problems, camel=camel)
    shown = _SNAKE if camel else {name: name for name in _SNAKE}
    kind = given.get("kind")
    if given and kind not in get_args(LayerKind):
        problems.append(f"{place}.kind: got {kind!r}, allowed are {', '.join(get_args(LayerKind))}")
    if len(problems) > before:
        return None
    for name in _NEEDED[str(kind)]:
        if not given.get(name):
            problems.append(f"{place}.{shown[name]}: is missing or 0; layers of kind {kind} need it")
    if kind in ("latent", "window") and not given.get("fixed_bytes") and not given.get("head_size"):
        problems.append(
            f"{place}: is without a size of its entries; give {shown['head_size']}"
            f"{'' if kind == 'latent' else ' and ' + shown['kv_heads']}, or {shown['fixed_bytes']}"
        )
    elif kind == "window" and not given.get("fixed_bytes") and not given.get("kv_heads"):
        problems.append(f"{place}.{shown['kv_heads']}: is missing; layers of kind window need it")
    if kind != "state" and "states" in given:
        problems.append(f"{place}.states: only layers of kind state have states, this is {kind}")
    states = [
        _fields_of(each, LayerState, f"{place}.states[{index}]", problems, camel=camel)
        for index, each in enumerate(given.get("states", ()))
    ]
    if len(problems) > before:
        return None
    if states:
        given["states"] = tuple(LayerState(**each) for each in states)
    return CachedLayers(**given)


def _fields_of(
    value: object, kind: type[Any], place: str, problems: list[str], *, camel: bool
) -> dict[str, Any]:
    """Return the checked fields of one object under the names of the record."""
    if not isinstance(value, Mapping):
        problems.append(f"{place}: got {type(value).__name__}, must be an object")
        return {}
    declared = {(_SNAKE[each.name] if camel else each.name): each for each in fields(kind)}
    unknown = sorted(map(str, value.keys() - declared.keys()))
    if unknown:
        problems.append(f"{place}: unknown fields {', '.join(unknown)}, allowed are {', '.join(declared)}")
    found = {}
    for name, field in declared.items():
        if name not in value:
            if field.default is MISSING:
                problems.append(f"{place}.{name}: is missing")
            continue
        given = value[name]
        if field.name in ("kind", "states"):
            is_right, needed = (field.name == "kind" or isinstance(given, list)), "a list of objects"
        elif field.type == "bool":
            is_right, needed = isinstance(given, bool), "true or false"
        else:
            least = 0 if field.default == 0 else 1
            most = _MOST_LAYERS if field.name == "count" else _MAXIMUM
            is_right = isinstance(given, int) and not isinstance(given, bool) and least <= given <= most
            needed = f"a whole number from {least} to {most}"
        if not is_right:
            problems.append(f"{place}.{name}: got {str(given)[:60]!r}, must be {needed}")
        found[field.name] = given
    return found
