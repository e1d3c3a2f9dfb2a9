"""Price of streaming jobs and of Express brokers.

Managed Service for Apache Flink bills KPUs per hour, one more per application, and 50 GB of running storage
per KPU (https://docs.aws.amazon.com/managed-flink/latest/java/how-pricing.html). Express brokers are billed
per hour, per GB that is written, and per GB-month that is kept (https://aws.amazon.com/msk/pricing/). An
alarm is billed per metric that it asks for, and each asks for one.
"""

from __future__ import annotations

from typing import Final

from inference_blueprints.serving.streaming import KPU_DISK_GB, BrokerLoad, StreamingJobSize
from inference_catalog import BrokerSize, ServicePrices
from inference_contracts.units import HOURS_PER_DAY, HOURS_PER_MONTH, SECONDS_PER_DAY

#: Alarms of a job.
ALARMS_PER_STREAM: Final = 5
_MB_IN_GB: Final = 1000
_DAYS_A_MONTH: Final = HOURS_PER_MONTH / HOURS_PER_DAY


def job_usd_per_day(size: StreamingJobSize, services: ServicePrices) -> float:
    """Return the price of a job's applications that run all day at their planned size."""
    hourly = (size.kpus + 1) * services.usd("flink_kpu")
    storage = size.kpus * KPU_DISK_GB * services.usd("flink_storage") / HOURS_PER_MONTH
    return size.shards * (hourly + storage) * HOURS_PER_DAY


def brokers_usd_per_day(
    brokers: int, size: BrokerSize, load: BrokerLoad, services: ServicePrices
) -> float | None:
    """Return the price of Express brokers at the peak all day; None if the price of their size is unknown.

    load: What the jobs demand.
    """
    if size.usd_per_hour is None:
        return None
    written = load.ingress_mb_per_second / _MB_IN_GB * SECONDS_PER_DAY * services.usd("express_broker_data")
    kept = load.stored_gb * services.usd("express_broker_storage") / _DAYS_A_MONTH
    return brokers * size.usd_per_hour * HOURS_PER_DAY + written + kept
