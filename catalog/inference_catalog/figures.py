"""Published and measured figures: speeds of models, starts of workers, frontends and streaming."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from inference_catalog.configurations.weight_schemes import STORED_TYPES
from inference_catalog.entry_builder import build_entry
from inference_catalog.model import Model
from inference_contracts.records import dataclass
from inference_contracts.units import MILLISECONDS_PER_SECOND, THOUSAND

# Speeds of engines on instance types that no latency profile covers, as others published them.

# Models with the same layers, sizes and weights, which run at the same speed.


def same_shape(name: str, models: Mapping[str, Model]) -> tuple[str, ...]:
    """Return the models that have the shape of one, and that one first.

    Parameters
    ----------
    name
        Hugging Face id. Without an entry, the result has only this name.
    models
        Entries of the catalogue by name.
    """
    if name not in models:
        return (name,)
    shape = _without_words(models[name])
    others = (other for other, entry in models.items() if other != name and _without_words(entry) == shape)
    return (name, *others)


def stored_model(name: str, models: Mapping[str, Model]) -> Model | None:
    """Return a model by the name that latency profiles have.

    Parameters
    ----------
    name
        Hugging Face id, or with the type in which its weights are stored: ``Qwen/Qwen3-8B in fp8``.
    models
        Entries of the catalogue by name.

    Returns
    -------
    Model or None
        None without an entry, or for another type than those of ``STORED_TYPES``.
    """
    entry, _, stored = name.partition(" in ")
    found = models.get(entry)
    if found is None or not stored:
        return found
    changed = found.stored_as(stored) if stored in STORED_TYPES else found
    return changed if changed.name == name else None


def _without_words(model: Model) -> Model:
    """Return the entry without what has no effect on its speed."""
    return replace(model, name="", answer_format=None, gated=False, licence="", source="")


_PUBLISHED_SPEEDS_FILE = Path(__file__).resolve().parent / "data" / "published_speeds.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSpeed:
    """A speed that somebody measured and published. It is not a measurement of this library."""

    model: str
    """Hugging Face id."""
    same_shape_as: str | None
    """Entry of the model catalogue with the same layers and sizes, so that it runs at the same speed. None if
    there is no such entry, or if the model has an entry of its own."""
    instance_type: str
    """EC2 instance type; it need not be in the catalogue."""
    devices: int | None
    """Devices of the instance that took part, counted as in the catalogue; its processors are one device.
    None if the instance type is not in the catalogue."""
    engine: str
    """The blueprint's key of the engine."""
    quantization: str
    """Type of the weights, as the source names it."""
    concurrent_requests: int
    """Requests that were served at the same time."""
    least_tokens_per_second: float
    most_tokens_per_second: float | None
    """`least_tokens_per_second`, `most_tokens_per_second`: Smallest and largest generated tokens per second
    of all these requests together. The largest is None if the source states none."""
    conditions: str
    """What else the figure depends on."""
    date: str
    source: str
    """`date`, `source`: When and where it was published."""


@cache
def published_speeds() -> tuple[PublishedSpeed, ...]:
    """Return every published speed in the order of the file."""
    document = json.loads(_PUBLISHED_SPEEDS_FILE.read_text(encoding="utf-8"))
    return tuple(build_entry(PublishedSpeed, each, _PUBLISHED_SPEEDS_FILE) for each in document["speeds"])


# Published times of the parts of a worker's start that do not follow from bytes and bandwidths.


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTimeFigure:
    """A published time."""

    name: str
    """The part of the start."""
    seconds: float
    """The time."""
    measured: str
    """What was measured, and on what."""
    date: str
    source: str
    """`date`, `source`: When and where it was published."""
    weights_bytes: int | None = None
    """Weights of the measured model, if the time depends on them."""


# What a frontend needs for the requests that pass through it.


@dataclass(frozen=True, slots=True)
class FrontendLoad:
    """Measured processor time and memory of a frontend."""

    name: str
    """The blueprint's key of the stack, such as ``dynamo``."""
    milliseconds_per_request: float
    milliseconds_per_thousand_prompt_tokens: float
    milliseconds_per_thousand_answer_tokens: float
    """`milliseconds_per_request`, `milliseconds_per_thousand_prompt_tokens`,
    `milliseconds_per_thousand_answer_tokens`: Processor time for the fixed part of a request, and for tokens
    of prompt and streamed answer."""
    memory_mib: int
    """Memory of a process with one large vocabulary, in MiB."""
    largest_cpu: int
    """vCPUs above which another frontend is better than a larger one."""
    memory_mib_per_cpu: int
    """Memory for each vCPU, in MiB."""
    machine: str
    date: str
    source: str
    """`machine`, `date`, `source`: Where and when the figures were measured, and with what."""

    def processor_seconds(self, prompt_tokens: float, answer_tokens: float) -> float:
        """Return the processor time of one request, in seconds."""
        prompt = self.milliseconds_per_thousand_prompt_tokens * prompt_tokens / THOUSAND
        answer = self.milliseconds_per_thousand_answer_tokens * answer_tokens / THOUSAND
        return (self.milliseconds_per_request + prompt + answer) / MILLISECONDS_PER_SECOND


# What Kafka's brokers carry, and what a streaming job needs for its events and calls.

_FIGURES_FILE = Path(__file__).resolve().parent / "data" / "streaming.json"


@dataclass(frozen=True, slots=True)
class BrokerSize:
    """A size of MSK's Express brokers."""

    name: str
    """AWS's name, such as ``express.m7g.large``."""
    ingress_mb_per_second: float
    egress_mb_per_second: float
    """`ingress_mb_per_second`, `egress_mb_per_second`: Sustained throughput in MB per second, which AWS
    recommends not to exceed."""
    partitions: int
    """Recommended number of partitions, with their replicas."""
    usd_per_hour: float | None
    """US dollars per hour in us-east-1; None if it is not known."""


@dataclass(frozen=True, slots=True)
class JobLoad:
    """Processor time and memory of a streaming job, as measured, and what divides its topic."""

    name: str
    """The engine, ``flink``."""
    microseconds_per_event: float
    microseconds_per_call: float
    """`microseconds_per_event`, `microseconds_per_call`: Processor time for an event that is read and kept,
    and for a call with the write of its answer. Both are of the whole job after the JVM has compiled it."""
    partition_microseconds_per_event: float
    partition_microseconds_per_call: float
    """`partition_microseconds_per_event`, `partition_microseconds_per_call`: The same, as first assumed. The
    partitions of a topic are computed from them, so that a new measurement does not change a topic that is
    deployed."""
    kib_per_call_in_flight: int
    """Memory of a call that waits for its answer, beside its prompt."""
    most_calls_in_flight_per_cpu: int
    """Most calls in flight per vCPU that were measured."""
    machine: str
    date: str
    source: str
    """`machine`, `date`, `source`: Where and when the figures were measured, and with what."""


@cache
def regions_without_flink_logs() -> frozenset[str]:
    """Return the regions in which CloudFormation cannot give a Flink application its log stream."""
    return frozenset(json.loads(_FIGURES_FILE.read_text(encoding="utf-8"))["regions_without_flink_logs"])


# Measured speed of a model on an accelerator, in the format of Dynamo's simulated engine.


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Duration of prefill and decode for one model, accelerator and tensor parallel size.

    The arrays are those of ``dynamo.mocker --planner-profile-data``; their values are predictions from
    aiconfigurator's database of measured operators, so figures made from them are simulated.
    """

    model: str
    accelerator: str
    tensor_parallel_size: int
    """`model`, `accelerator`, `tensor_parallel_size`: The measured combination: Hugging Face id, catalogue
    name, number of devices."""
    system: str
    backend: str
    backend_version: str
    """`system`, `backend`, `backend_version`: aiconfigurator's names: system, engine, and the engine release
    of its data."""
    date: str
    source: str
    """`date`, `source`: Date and tool of the profile."""
    measured_to: tuple[tuple[str, int], ...]
    """Longest length that was measured in each of aiconfigurator's tables, in tokens. Prefill ends at the
    shortest, decode at that of its attention."""
    mean_error_percent: float
    largest_error_percent: float
    """`mean_error_percent`, `largest_error_percent`: Errors of values half way between the points of the
    tables, compared with the database. The largest errors are at steps of the hardware, such as a batch that
    needs one more wave of blocks."""
    prefill_isl: tuple[float, ...]
    """Input lengths in tokens."""
    prefill_ttft_ms: tuple[float, ...]
    """Time to first token in milliseconds for each length, with one request at a time."""
    decode_active_kv_tokens: tuple[float, ...]
    decode_context_length: tuple[float, ...]
    """`decode_active_kv_tokens`, `decode_context_length`: Axes of the decode table: tokens in the KV cache of
    all running requests, and mean tokens per request."""
    decode_itl: tuple[tuple[float | None, ...], ...]
    """Milliseconds per decode step, ``[active KV tokens][context length]``. None where nothing was measured:
    in each column, only from some row on."""

    @property
    def max_prompt_tokens(self) -> float:
        """Longest prompt whose prefill is known, in tokens."""
        return self.prefill_isl[-1]

    @property
    def max_context_tokens(self) -> float:
        """Longest mean context of running requests for which a decode step is known, in tokens."""
        return self.decode_context_length[-1]

    def max_active_kv_tokens(self, context_tokens: float) -> float:
        """Return the most tokens in the KV cache for which a decode step is known.

        Parameters
        ----------
        context_tokens
            Mean tokens per running request.

        Returns
        -------
            0 beyond the longest context.
        """
        axis = self.decode_context_length
        if context_tokens > axis[-1]:
            return 0.0
        upper = bisect_left(axis, context_tokens)
        columns = {upper} if axis[upper] == context_tokens else {max(0, upper - 1), upper}
        known = (
            tokens
            for tokens, row in zip(self.decode_active_kv_tokens, self.decode_itl, strict=True)
            if all(row[column] is not None for column in columns)
        )
        return max(known, default=0.0)

    def covers(
        self, *, prompt_tokens: float = 0.0, context_tokens: float = 0.0, active_kv_tokens: float = 0.0
    ) -> bool:
        """Return whether the tables reach as far as this. Beyond their ends, each figure is unknown.

        Parameters
        ----------
        prompt_tokens
            Tokens of a prompt whose prefill is computed.
        context_tokens
            Mean tokens per running request.
        active_kv_tokens
            Tokens in the KV cache of all running requests together.
        """
        return (
            prompt_tokens <= self.max_prompt_tokens
            and context_tokens <= self.max_context_tokens
            and active_kv_tokens <= self.max_active_kv_tokens(context_tokens)
        )
