"""All results of `blueprints plan`."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.report.figures.batch_day_summary import BatchDaySummary
from inference_blueprints.report.figures.batch_worker_summary import BatchWorkersSummary
from inference_blueprints.report.figures.compilation_summary import CompilationSummary
from inference_blueprints.report.figures.edge_summary import EdgeSummary
from inference_blueprints.report.figures.frontend_summary import FrontendSummary
from inference_blueprints.report.figures.image_summary import ImageSummary
from inference_blueprints.report.figures.node_figures import (
    ColdStart,
    MemorySummary,
    PodFit,
    PoolSummary,
    ProcessSummary,
)
from inference_blueprints.report.figures.objective_check import ObjectiveCheck
from inference_blueprints.report.figures.platform_cost import PlatformCost
from inference_blueprints.report.figures.prices import PriceNote, SignalStorePrice, TokenPrice, Totals
from inference_blueprints.report.figures.quota_use import AddressUse, QuotaNeed, ServiceQuotaUse
from inference_blueprints.report.figures.repair_summary import RepairSummary
from inference_blueprints.report.figures.scaling_summary import ScalingSummary
from inference_blueprints.report.figures.shift_summary import ShiftSummary
from inference_blueprints.report.figures.streaming_summary import KafkaSummary, StreamingSummary
from inference_catalog import Support


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """All results of `blueprints plan`.

    Parameters
    ----------
    pools, processes, memory
        In the blueprint's order.
    frontends
        Frontends of the deployments on Dynamo.
    scaling
        Roles whose number of workers follows the load.
    prices
        Source of the prices.
    platform_cost
        Cost of a month of the whole platform.
    token_prices
        Token prices of the deployments with a latency profile.
    without_profile
        Deployments without one that write text, as ``model/deployment``.
    embedding
        Deployments of embedding models, which have no price of tokens, as ``model/deployment``.
    objectives
        Objectives of every deployment, compared with the plan's figures.
    batch_days
        Days of the queues that declare a load, in the blueprint's order.
    service_quotas
        Use of service quotas by these queues; empty if none declares a load.
    signal_store
        Price of the signal store; None if there is none.
    batch_workers
        Resources and price of the batch workers; None without batch.
    repairs
        Who replaces broken nodes of each pool; empty if Karpenter does and nothing looks for slow GPUs.
    compilations
        First compilations of deployments on Neuron.
    images
        Speed and price of images of the deployments that make some.
    shift
        Workers whose floors the capacity shift sets.
    edges
        What models with a large peak need between clients and workers.
    support
        The features that the blueprint uses, with their support levels.
    streaming, kafka
        Streaming jobs, and their Kafka cluster; None without one.
    """

    name: str
    region: str
    support: Support
    pools: tuple[PoolSummary, ...]
    processes: tuple[ProcessSummary, ...]
    frontends: tuple[FrontendSummary, ...]
    scaling: tuple[ScalingSummary, ...]
    memory: tuple[MemorySummary, ...]
    totals: Totals
    prices: PriceNote
    platform_cost: PlatformCost
    token_prices: tuple[TokenPrice, ...]
    without_profile: tuple[str, ...]
    embedding: tuple[str, ...]
    objectives: tuple[ObjectiveCheck, ...]
    quotas: tuple[QuotaNeed, ...]
    batch_days: tuple[BatchDaySummary, ...]
    service_quotas: tuple[ServiceQuotaUse, ...]
    signal_store: SignalStorePrice | None
    batch_workers: BatchWorkersSummary | None
    repairs: tuple[RepairSummary, ...]
    compilations: tuple[CompilationSummary, ...]
    images: tuple[ImageSummary, ...]
    shift: tuple[ShiftSummary, ...]
    edges: tuple[EdgeSummary, ...]
    streaming: tuple[StreamingSummary, ...]
    kafka: KafkaSummary | None
    cold_starts: tuple[ColdStart, ...]
    addresses: AddressUse
    fits: tuple[PodFit, ...]
