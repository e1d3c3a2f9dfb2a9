"""What each engine runs in which format on which GPU: one table, read by checks, plans and pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from inference_catalog.entry_builder import CatalogueError, build_entry
from inference_catalog.model import Model
from inference_contracts.records import dataclass

#: ``runs``: the engine starts; ``refused``: it does not, or its documents exclude it; ``unknown``: no source.
Verdict = Literal["runs", "refused", "unknown"]

_FILE = Path(__file__).resolve().parent / "data" / "capabilities.json"
_MX_BLOCK = 32


@dataclass(frozen=True, slots=True)
class FormatSupport:
    """What an engine does with one format of weights, or one kind of attention, on each capability."""

    name: str
    """Format, or format and tool such as ``fp8/modelopt``; of attention, kind and type of the KV cache such
    as ``mla/fp8``."""
    accepted: tuple[str, ...]
    """Compute capabilities on which the engine starts."""
    fast: tuple[str, ...]
    """Those on which its kernels compute in the format. On the others it unpacks to 16 bits."""
    refused: tuple[str, ...]
    """Those on which it does not start, or which its documents exclude. What is in neither is unknown."""
    source: str
    """Files and lines of the release, documents, issues."""
    refusal: str = ""
    """What the engine says or does where it is refused, as a phrase after its name."""
    wrong: Mapping[str, str] = field(default_factory=dict)
    """Known wrong answers, by capability, with their report."""
    backends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of attention, capabilities by the engine's name of the kernels that ``attention-backend`` may choose.
    Names that were not read are not in it."""
    note: str = ""
    """What else to know, also why something is unknown."""

    def verdict(self, capability: str) -> Verdict:
        """Return whether the engine runs it.

        Parameters
        ----------
        capability
            Compute capability, such as ``9.0``.
        """
        if capability in self.accepted:
            return "runs"
        return "refused" if capability in self.refused else "unknown"


@dataclass(frozen=True, slots=True)
class SupportAnswer:
    """What is known about one combination."""

    verdict: Verdict
    rows: tuple[FormatSupport, ...]
    """The rows that decide: several if the tool that quantised the weights is not known, none if the table
    has no row."""

    @property
    def refusal(self) -> str:
        """Why it is refused, as a phrase after the engine's name."""
        return next((row.refusal for row in self.rows if row.refusal), "does not run it")

    @property
    def note(self) -> str:
        """What else is known; empty if nothing is."""
        return "; ".join(dict.fromkeys(row.note for row in self.rows if row.note))

    def wrong(self, capability: str) -> str:
        """Return the known wrong answers on a capability; empty if none are known."""
        return next((row.wrong[capability] for row in self.rows if capability in row.wrong), "")

    def is_fast(self, capability: str) -> bool:
        """Return whether kernels compute in the format on a capability."""
        return bool(self.rows) and all(capability in row.fast for row in self.rows)


@dataclass(frozen=True, slots=True)
class EngineSupport:
    """The rows of one engine."""

    name: str
    """The blueprint's key, such as ``vllm``."""
    release: str
    """Release of the engine that was read."""
    source: str
    weights: Mapping[str, FormatSupport]
    attention: Mapping[str, FormatSupport]
    """`weights`, `attention`: Rows by name."""

    def of_weights(self, name: str, tool: str, capability: str) -> SupportAnswer:
        """Return what the engine does with weights.

        Parameters
        ----------
        name
            Format, such as ``fp8Blocks``.
        tool
            Tool that quantised them, as in ``Model.quantisation_method``; empty if it is not known.
        capability
            Compute capability of the GPU.
        """
        exact = self.weights.get(f"{name}/{tool}") if tool else None
        if exact or tool:
            rows = [exact or self.weights.get(name)]
        else:
            rows = [row for key, row in self.weights.items() if key.split("/")[0] == name]
        return _answer([row for row in rows if row], capability)

    def of_attention(self, kind: str, cache_type: str, capability: str) -> SupportAnswer:
        """Return what the engine does with a kind of attention and a type of the KV cache.

        Parameters
        ----------
        kind
            ``full``, ``sinks``, ``mla``, ``sparseMla`` or ``packedMla``.
        cache_type
            ``16bit``, ``fp8``, ``fp8E4m3`` (without a row of its own, as ``fp8``) or ``fp8E5m2``.
        capability
            Compute capability of the GPU.
        """
        row = self.attention.get(f"{kind}/{cache_type}")
        if row is None and cache_type == "fp8E4m3":
            row = self.attention.get(f"{kind}/fp8")
        return _answer([row] if row else [], capability)


def _answer(rows: Sequence[FormatSupport], capability: str) -> SupportAnswer:
    """Combine rows: they decide only if they agree."""
    verdicts = {row.verdict(capability) for row in rows}
    return SupportAnswer(next(iter(verdicts)) if len(verdicts) == 1 else "unknown", tuple(rows))


def weight_format(model: Model) -> str:
    """Return the table's name of the format of a model's weights.

    Parameters
    ----------
    model
        The model, with its weights as the repository stores them.
    """
    if model.weight_type != "fp8" or not model.weight_block:
        return model.weight_type
    return "mxfp8" if model.weight_block == _MX_BLOCK else "fp8Blocks"


#: Models whose attention adds a learned value per head, which not every kernel computes.
_SINKS = frozenset({"GptOssForCausalLM"})


def attention_kind(model: Model) -> str:
    """Return the table's name of a model's kind of attention.

    Parameters
    ----------
    model
        The model.
    """
    if model.cache.page_alignment:
        return "packedMla"
    if model.attention == "mla":
        return "sparseMla" if model.index_layers else "mla"
    return "sinks" if model.architecture in _SINKS else "full"


def cache_format(name: str) -> str:
    """Return the table's name of a type of the KV cache.

    Parameters
    ----------
    name
        The engine's name of the type, such as ``fp8_e4m3`` or ``auto``.
    """
    exact = {"fp8_e4m3": "fp8E4m3", "fp8_e5m2": "fp8E5m2"}
    if name in exact:
        return exact[name]
    return "fp8" if name.startswith("fp8") else "16bit"


@cache
def engine_support() -> Mapping[str, EngineSupport]:
    """Return the rows of each engine that computes on GPUs, by the blueprint's key."""
    document = json.loads(_FILE.read_text(encoding="utf-8"))
    return MappingProxyType({name: _engine(name, entry) for name, entry in document["engines"].items()})


@cache
def capabilities() -> Mapping[str, str]:
    """Return NVIDIA's name of the architecture by compute capability, the oldest first."""
    return MappingProxyType(json.loads(_FILE.read_text(encoding="utf-8"))["capabilities"])


def _engine(name: str, entry: Mapping[str, object]) -> EngineSupport:
    rows = {key: _rows(entry[key]) for key in ("weights", "attention")}
    return build_entry(EngineSupport, {"name": name, **entry, **rows}, _FILE)


def _rows(entries: object) -> Mapping[str, FormatSupport]:
    if not isinstance(entries, dict):
        raise CatalogueError(f"{_FILE}: rows must be an object")
    return MappingProxyType(
        {name: build_entry(FormatSupport, {"name": name, **entry}, _FILE) for name, entry in entries.items()}
    )
