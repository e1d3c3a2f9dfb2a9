"""Node tables of the plan: pools, processes, memory, placement and cold starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import inference_catalog as catalog
from inference_blueprints.report.figures import (
    ColdStart,
    MemorySummary,
    PlanSummary,
    PodFit,
    PoolSummary,
    ProcessSummary,
    Totals,
)
from inference_blueprints.report.plan.tables.cells import (
    UNKNOWN,
    counted,
    gb,
    gib,
    usd,
    usd_at_least,
    usd_at_most,
)
from inference_blueprints.report.tables.text_table import TextTable
from inference_catalog.image_cache import INITIALIZATION_MIB_PER_SECOND


def pools(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Pools",
        ("pool", "instance types"),
        ("nodes of maximum", "devices of maximum", "USD per hour, used", "USD per hour, maximum"),
        (*map(_pool_row, summary.pools), _total_row(summary.totals)),
        tuple(_idle_nodes(summary.pools)),
    )


def _idle_nodes(pools: Sequence[PoolSummary]) -> Iterable[str]:
    """Say which devices `nodes.min` keeps running without a worker."""
    for pool in pools:
        if pool.nodes_idle:
            yield (
                f"Stranded: {pool.accelerators_idle} devices of pool {pool.name} hold no worker. "
                f"nodes.min keeps "
                f"{counted(pool.nodes_used, 'node')}, and the workers fill "
                f"{pool.nodes_used - pool.nodes_idle}."
            )


def _pool_row(pool: PoolSummary) -> tuple[str, ...]:
    purchase = "" if pool.purchase == "onDemand" else f" ({pool.purchase})"
    kind = f" {pool.accelerator}" if pool.accelerator else ""
    return (
        pool.name,
        ", ".join(pool.instance_types) + purchase,
        f"{pool.nodes_used} of {pool.nodes_max}",
        f"{pool.accelerators_used} of {pool.accelerators_max}{kind}",
        usd_at_most(pool.usd_per_hour_used, pool.usd_per_hour_used_at_most),
        usd(pool.usd_per_hour_max),
    )


def _total_row(totals: Totals) -> tuple[str, ...]:
    return (
        "total",
        "",
        f"{totals.nodes_used} of {totals.nodes_max}",
        f"{totals.accelerators_used} of {totals.accelerators_max}",
        _total_used(totals),
        usd_at_least(totals.usd_per_hour_max, is_partial=bool(totals.without_max)),
    )


def _total_used(totals: Totals) -> str:
    """Return the price of all used nodes, or a bound: a sum without a part is not shown as the whole."""
    if totals.without_used and totals.usd_per_hour_used_at_most is not None:
        return usd_at_most(None, totals.usd_per_hour_used_at_most)
    return usd_at_least(totals.usd_per_hour_used, is_partial=bool(totals.without_used))


def node_images(summary: PlanSummary) -> TextTable:
    paired = [pool.name for pool in summary.pools if pool.pairs_efa_with_gpus]
    reason = (
        f"The workers on {', '.join(paired)} move KV cache over EFA and use a part of a node. On AL2023 they "
        "get the EFA interfaces beside their GPUs."
    )
    return TextTable(
        "Node images",
        ("pool",),
        ("operating system",),
        tuple((pool.name, pool.node_image) for pool in summary.pools),
        (reason,) if paired else (),
    )


def processes(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Processes",
        ("process", "pool"),
        ("replicas", "devices per replica"),
        tuple(map(_process_row, summary.processes)),
    )


def _process_row(process: ProcessSummary) -> tuple[str, ...]:
    return (
        f"{process.model}/{process.deployment}/{process.name}",
        process.pool or "system nodes",
        process.replica_range,
        _devices(process),
    )


def _devices(process: ProcessSummary) -> str:
    devices = str(process.accelerators or "-")
    return f"{devices} on {process.nodes} nodes" if process.nodes > 1 else devices


def memory(summary: PlanSummary) -> TextTable:
    # The memory of a Neuron device is split over its cores, and each layer over all cores of a worker.
    per_core = ", ".join(each.deployment for each in summary.compilations)
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
            "concurrent requests",
        ),
        tuple(map(_memory_row, summary.memory)),
        (
            f"All GiB and KiB are per device{exception}. Engine: activations, contexts and graphs. "
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
        f"{memory.concurrent_requests:,}",
    )


def kv_cells(memory: MemorySummary) -> tuple[str, ...]:
    """Return the KV cache: per device in GiB, and per token and worker; dashes for a model without one."""
    if not memory.kv_bytes_per_token:
        return ("-",) * 3
    return (
        gib(memory.kv_cache_bytes),
        f"{memory.kv_bytes_per_token / 1024:.4g}",
        f"{memory.kv_cache_tokens:,}",
    )


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
        tuple(_host_cache_row(memory) for memory in summary.memory if memory.host_kv_tokens),
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


def fits(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Workers per node",
        ("deployment", "instance type"),
        ("workers per node", "limited by", "idle devices"),
        tuple(map(_fit_row, summary.fits)),
        tuple(_stranded(summary.fits)),
    )


def _fit_row(fit: PodFit) -> tuple[str, ...]:
    return (
        f"{fit.model}/{fit.deployment}",
        fit.instance_type,
        str(fit.workers_per_node),
        fit.limited_by,
        str(fit.stranded_devices or "-"),
    )


def _stranded(fits: Iterable[PodFit]) -> Iterable[str]:
    for fit in fits:
        if fit.stranded_devices:
            yield (
                f"{fit.stranded_devices} devices of each {fit.instance_type} stay idle: "
                f"{fit.limited_by} limits "
                f"the workers of {fit.model}/{fit.deployment}."
            )


def cold_starts(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Cold start of a new node",
        ("deployment", "node", "weights"),
        (
            "launch, s",
            "image, s or s per GB",
            "weights, GB",
            "load weights, s",
            "engine, s",
            "sum of the known, s",
        ),
        tuple(map(_cold_start_row, summary.cold_starts)),
        tuple(_cold_start_notes(summary.cold_starts)),
    )


def _cold_start_row(start: ColdStart) -> tuple[str, ...]:
    return (
        f"{start.model}/{start.deployment}",
        f"{counted(start.workers_on_the_node, 'worker')} on {start.instance_type}",
        start.weights_from.replace(" by ", ", limited by "),
        _with_basis(start.launch_seconds, start.launch_basis),
        f"{start.image_seconds_per_gb:.2f} per GB"
        if start.image_seconds is None
        else f"{start.image_seconds:.0f}",
        gb(start.weights_bytes),
        f"{start.weights_seconds:.0f}",
        _with_basis(start.engine_seconds, start.engine_basis),
        f"{start.known_seconds:.0f}",
    )


def _with_basis(seconds: float | None, basis: str) -> str:
    return UNKNOWN if seconds is None else f"{seconds:.0f}, {basis}"


def _cold_start_notes(starts: Sequence[ColdStart]) -> Iterable[str]:
    yield (
        "Image and weights are computed, and a minimum: bytes divided by the bandwidth of the node's first "
        "network card, of EBS and, for weights and images from the internet, of one NAT gateway (100 "
        "Gbit/s). The Hugging Face Hub and NVMe add time. Workers that start together share the node's "
        "network, and all nodes of a zone share its NAT gateway."
    )
    bases = {
        "launch": {start.launch_basis for start in starts},
        "engine": {start.engine_basis for start in starts},
    }
    for part, figure in catalog.start_times().items():
        if "published" in bases[part]:
            yield (
                f"Published {part}, {figure.date}: {figure.measured} ({figure.source}). Write what you "
                f"measure into 'measuredStart.{part}Seconds' of the workers."
            )
    if any(start.image_from == "snapshot" for start in starts):
        yield (
            f"An image from a snapshot is unpacked and loads at up to {INITIALIZATION_MIB_PER_SECOND} MiB/s. "
            "The engine starts before the whole image is there and waits for the parts that it reads."
        )
    for start in starts:
        yield f"Longer transfer for {start.model}/{start.deployment}: {start.dominated_by}."
