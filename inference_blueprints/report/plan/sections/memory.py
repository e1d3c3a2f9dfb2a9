"""Use of device memory by the workers of each deployment, and the KV cache outside the devices."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.cells import few, gib
from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.compilations import COMPILATIONS
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.engines.kv_cache import chunk_tokens
from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.estimates.cache_tiers import shared_cache, whole_kv_bytes_per_token
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.performance import concurrent_requests
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.traffic import WayIn
from inference_contracts.number_text import number
from inference_contracts.records import dataclass

#: Prices of us-east-1, S3 Standard, first 50 TB (https://aws.amazon.com/s3/pricing/, 2026-07).
USD_PER_GB_MONTH = 0.023
USD_PER_PUT = 0.005 / 1000
_DAYS_PER_MONTH = 30


@dataclass(frozen=True, slots=True)
class LongestOfWay:
    """The lengths of the requests of one way in which they come in to a deployment."""

    way: str
    """Such as ``real time`` or ``queue 'nightly'``."""
    tokens: int
    """Prompt and answer of the longest request together, in tokens."""
    is_stated: bool
    """Whether the file states the longest prompt; otherwise it is four times the mean."""
    input_tokens_mean: int
    input_tokens_max: int
    output_tokens_mean: int
    output_tokens_max: int
    """`input_tokens_mean`, `input_tokens_max`, `output_tokens_mean`, `output_tokens_max`: Mean and longest
    prompt and answer, in tokens."""
    prompt_images_mean: float | None
    prompt_images_max: int | None
    """`prompt_images_mean`, `prompt_images_max`: Images of a prompt, whose tokens are a part of its length;
    None if the file states none."""


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """Use of device memory by one worker."""

    model: str
    deployment: str
    """`model`, `deployment`: The worker's deployment; ``deployment/role`` if it is disaggregated."""
    accelerator_bytes: int
    """Memory of one device."""
    weights_bytes: int
    activation_bytes: int
    reserved_bytes: int
    kv_cache_bytes: int
    """`weights_bytes`, `activation_bytes`, `reserved_bytes`, `kv_cache_bytes`: Parts of it in bytes, without
    the part that the engine may not use."""
    kv_bytes_per_token: float
    """KV cache of a token on one device."""
    kv_cache_tokens: int
    """Capacity of the worker's KV cache in tokens."""
    host_kv_tokens: int
    nvme_kv_tokens: int
    """`host_kv_tokens`, `nvme_kv_tokens`: Capacity in host memory and on NVMe, in tokens."""
    shared_kv_usd: float | None
    """US dollars per million tokens in S3, until they expire; None if S3 is not used."""
    longest_request_tokens: int
    """The longest request that the engine accepts: prompt and answer together, in tokens. For images, the
    longest prompt."""
    longest_by_way: tuple[LongestOfWay, ...]
    """The longest request of each way in."""
    mean_request_tokens: int
    """The workload's mean of the same."""
    concurrent_requests: int
    """Requests of the stated mean length that run at once, limited by the KV cache and by the engine's
    maximum number of sequences."""


def usd_per_million_tokens(
    bytes_per_token: float, *, expire_days: int, tokens_per_object: int, objects_per_chunk: int
) -> float:
    """Return the price of writing a million tokens once and keeping them until they expire, in US dollars.

    bytes_per_token: KV cache of a token on all devices of a worker together, in bytes.
    expire_days: Days until the tokens expire.
    tokens_per_object: Tokens per chunk.
    objects_per_chunk: Objects per chunk: one per device.
    """
    gigabyte_months = 1e6 * bytes_per_token / 1e9 * expire_days / _DAYS_PER_MONTH
    puts = 1e6 / tokens_per_object * objects_per_chunk
    return gigabyte_months * USD_PER_GB_MONTH + puts * USD_PER_PUT


def _summarise(resolved: ResolvedWorkers) -> MemorySummary:
    sizing, memory = worker_sizing(resolved), worker_memory(resolved)
    ranks, workload = resolved.data_parallel_size, resolved.traffic.means
    return MemorySummary(
        model=resolved.model.name,
        deployment=resolved.label,
        accelerator_bytes=resolved.accelerator.core.memory_bytes,
        weights_bytes=memory.weights_bytes,
        activation_bytes=memory.activation_bytes,
        reserved_bytes=memory.reserved_bytes,
        kv_cache_bytes=memory.kv_cache_bytes,
        kv_bytes_per_token=memory.kv_bytes_per_token,
        kv_cache_tokens=ranks * sizing.kv_tokens,
        host_kv_tokens=sizing.host_kv_tokens,
        nvme_kv_tokens=sizing.nvme_kv_tokens,
        shared_kv_usd=_shared_kv_usd(resolved, memory, sizing.block_size),
        longest_request_tokens=sizing.max_model_len,
        longest_by_way=tuple(map(_of_way, resolved.traffic.ways)),
        mean_request_tokens=workload.input_tokens + workload.output_tokens,
        concurrent_requests=ranks * concurrent_requests(resolved),
    )


def _of_way(way: WayIn) -> LongestOfWay:
    images = way.prompt_images
    return LongestOfWay(
        way=way.label,
        tokens=way.longest_tokens,
        is_stated=way.states_longest,
        input_tokens_mean=way.means.input_tokens,
        input_tokens_max=way.longest_input,
        output_tokens_mean=way.means.output_tokens,
        output_tokens_max=way.longest_output,
        prompt_images_mean=images.mean if images else None,
        prompt_images_max=images.max if images else None,
    )


def _shared_kv_usd(resolved: ResolvedWorkers, memory: MemoryEstimate, block_size: int) -> float | None:
    bucket = shared_cache(resolved)
    if bucket is None:
        return None
    bytes_per_token = whole_kv_bytes_per_token(resolved, memory)
    return usd_per_million_tokens(
        bytes_per_token,
        expire_days=bucket.expire_days,
        tokens_per_object=chunk_tokens(resolved, block_size),
        objects_per_chunk=round(bytes_per_token / memory.kv_bytes_per_token),
    )


def memory(summary: PlanSummary) -> TextTable:
    # The memory of a Neuron device is split over its cores, and each layer over all cores of a worker.
    per_core = ", ".join(each.deployment for each in summary[COMPILATIONS])
    exception = f", but per NeuronCore for {per_core}" if per_core else ""
    return TextTable(
        "Memory per device",
        ("deployment",),
        (
            "device memory, GiB",
            "weights, GiB",
            "engine, GiB",
            "KV cache, GiB",
            "KV cache per token, KiB",
            "KV cache per worker, tokens",
            "longest request, tokens",
            "concurrent requests",
        ),
        tuple(map(_memory_row, summary[MEMORY])),
        (
            f"All GiB and KiB are per device{exception}. Engine: activations, contexts and graphs. "
            "Longest request: prompt and answer together, four times the mean if the file states no maximum; "
            "the engine refuses a longer one. "
            "Concurrent requests: requests of the workload's mean length that one worker runs at once.",
        ),
    )


def _memory_row(memory: MemorySummary) -> tuple[str, ...]:
    return (
        f"{memory.model}/{memory.deployment}",
        gib(memory.accelerator_bytes),
        gib(memory.weights_bytes),
        gib(memory.activation_bytes + memory.reserved_bytes),
        *kv_cells(memory),
        f"{memory.longest_request_tokens:,}",
        f"{memory.concurrent_requests:,}",
    )


def kv_cells(memory: MemorySummary) -> tuple[str, ...]:
    """Return the KV cache: per device in GiB, and per token and worker; dashes for a model without one."""
    if not memory.kv_bytes_per_token:
        return ("-",) * 3
    return (
        gib(memory.kv_cache_bytes),
        number(memory.kv_bytes_per_token / 1024, 4),
        f"{memory.kv_cache_tokens:,}",
    )


def lengths_by_way(summary: PlanSummary) -> TextTable:
    """Return the table of requests by way in, which has rows where the file says more than mean lengths."""
    # The roles of a deployment have the same requests.
    ways = dict.fromkeys(
        (f"{memory.model}/{memory.deployment.split('/')[0]}", way)
        for memory in summary[MEMORY]
        if _is_apart(memory)
        for way in memory.longest_by_way
    )
    return TextTable(
        "Requests by way in",
        ("deployment", "way in"),
        (
            "prompt, mean tokens",
            "prompt, longest",
            "answer, mean tokens",
            "answer, longest",
            "images of a prompt",
        ),
        tuple(
            (
                deployment,
                way.way,
                f"{way.input_tokens_mean:,}",
                f"{way.input_tokens_max:,}",
                f"{way.output_tokens_mean:,}",
                f"{way.output_tokens_max:,}",
                _images(way) or "-",
            )
            for deployment, way in ways
        ),
        (
            "Where the file states no maximum, the longest is four times the mean. Tokens of a prompt "
            "include those of its images.",
        ),
    )


def _images(way: LongestOfWay) -> str:
    """Return such as ``1.5, at most 4``; nothing without images."""
    if way.prompt_images_mean is None:
        return ""
    return f"{way.prompt_images_mean:g}, at most {way.prompt_images_max}"


def host_caches(summary: PlanSummary) -> TextTable:
    return TextTable(
        "KV cache outside the devices",
        ("deployment",),
        (
            "on devices, tokens per worker",
            "in host memory, tokens per worker",
            "on NVMe, tokens per worker",
            "in S3, USD per million tokens",
        ),
        tuple(_host_cache_row(memory) for memory in summary[MEMORY] if memory.host_kv_tokens),
        (
            "Each tier keeps copies from the tier before it, for longer. S3: price to write a million tokens "
            "once and keep them until they expire, in us-east-1.",
        ),
    )


def _host_cache_row(memory: MemorySummary) -> tuple[str, ...]:
    return (
        f"{memory.model}/{memory.deployment}",
        f"{memory.kv_cache_tokens:,}",
        f"{memory.host_kv_tokens:,}",
        f"{memory.nvme_kv_tokens:,}" if memory.nvme_kv_tokens else "-",
        "-" if memory.shared_kv_usd is None else f"{memory.shared_kv_usd:.2f}",
    )


def _is_apart(memory: MemorySummary) -> bool:
    """Whether the file says more of the deployment's requests than mean lengths of one way in."""
    ways = memory.longest_by_way
    return len(ways) > 1 or any(each.is_stated or each.prompt_images_max for each in ways)


def _ways(memory: MemorySummary) -> str:
    """Return the longest request of each way in, if the file says more than mean lengths."""
    if not _is_apart(memory):
        return ""
    ways = (
        f"{each.way} {each.tokens:,}"
        + ("" if each.is_stated else ", four times the mean")
        + (f", images of a prompt {_images(each)}" if _images(each) else "")
        for each in memory.longest_by_way
    )
    return f" ({'; '.join(ways)})"


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the longest request of each model, and the KV cache outside the devices."""
    lengths: dict[str, list[str]] = {}
    for each in summary[MEMORY]:
        mean = f", mean {each.mean_request_tokens:,}" if each.mean_request_tokens else ""
        of = "prompt and answer" if each.kv_bytes_per_token else "prompt"
        text = f"{each.longest_request_tokens:,} tokens of {of}{mean}; longer is refused{_ways(each)}"
        lengths.setdefault(text, []).append(
            f"{each.model}/{each.deployment}" if _is_apart(each) else each.model
        )
    for text, models in lengths.items():
        names = "" if len(lengths) == 1 else f"{few(dict.fromkeys(models), ', ')}: "
        yield Label.LONGEST, f"{names}{text}"
    for each in summary[MEMORY]:
        if each.host_kv_tokens:
            nvme = f", {each.nvme_kv_tokens:,} on NVMe" if each.nvme_kv_tokens else ""
            shared = "" if each.shared_kv_usd is None else ", and S3"
            yield (
                Label.CACHE,
                f"{each.kv_cache_tokens:,} tokens per worker on devices, {each.host_kv_tokens:,} in host "
                f"memory{nvme}{shared}",
            )


MEMORY = PlanSection(
    "memory",
    lambda basis: tuple(map(_summarise, basis.workers)),
    _in_short,
    (memory, lengths_by_way, host_caches),
)
