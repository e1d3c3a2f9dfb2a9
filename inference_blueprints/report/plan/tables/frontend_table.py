"""Sizes of frontends in the plan's tables, with their reason."""

from __future__ import annotations

import inference_catalog as catalog
from inference_blueprints.report.figures import FrontendSummary, PlanSummary
from inference_blueprints.report.tables.text_table import TextTable

_MIB_PER_GIB = 1024


def frontends(summary: PlanSummary) -> TextTable:
    """Return the table of frontends, which has rows if a model runs on Dynamo."""
    return TextTable(
        "Frontends",
        ("frontends of",),
        ("replicas", "vCPUs of each", "memory of each, GiB", "vCPUs used at peak by all"),
        tuple(map(_row, summary.frontends)),
        (_note(),),
    )


def _row(each: FrontendSummary) -> tuple[str, ...]:
    return (
        f"{each.model}/{each.deployment}",
        str(each.replicas),
        str(each.cpu),
        f"{each.memory_mib / _MIB_PER_GIB:g}",
        f"{each.busy_cpu:.2f}",
    )


def _note() -> str:
    load = catalog.frontend_load("dynamo")
    return (
        f"A request takes {load.milliseconds_per_request:g} ms of processor time, "
        f"{load.milliseconds_per_thousand_prompt_tokens:g} ms per 1,000 prompt tokens and "
        f"{load.milliseconds_per_thousand_answer_tokens:g} ms per 1,000 answer tokens (measured {load.date} "
        f"on {load.machine}). Unless the blueprint sets the size, half of it is free at the peak. Requests "
        "of batch jobs are not counted."
    )
