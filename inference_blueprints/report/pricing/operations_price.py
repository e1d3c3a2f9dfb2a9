"""Price of the controllers of the Operations stack in a month."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.figures import CostItem
from inference_blueprints.spec.controllers import controllers_of
from inference_blueprints.spec.types import Spec
from inference_catalog import ServicePrices

_RUNS_PER_MONTH = 730 * 60


def operations_items(spec: Spec, services: ServicePrices) -> Iterator[CostItem]:
    """Yield the cost of GPU health and the capacity shift; nothing without them.

    Prices of AWS Lambda, Amazon DynamoDB and of alarms are not in the catalogue, so they are left out. Its
    series are part of "metrics in CloudWatch".

    spec: The blueprint's section.
    """
    controllers = controllers_of(spec)
    if not controllers:
        return
    for each in controllers:
        yield CostItem(
            each.title,
            f"{_RUNS_PER_MONTH:,} runs of a function with 1,769 MiB, its table and its alarms, at prices "
            "that are not known",
            None,
        )
    alarms = spec.observability.alarms if spec.observability else None
    if alarms is None or alarms.topic_arn is None:
        yield CostItem("key of the topic of operations", "1 KMS key", services.usd("kms_key"))
