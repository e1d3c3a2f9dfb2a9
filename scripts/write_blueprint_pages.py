"""Write the plans into the pages of the shipped blueprints: picture, sizes and price.

A page is docs/blueprints/NAME.md. This script writes only the part between two lines:

    <!-- plan: written by scripts/write_blueprint_pages.py -->
    <!-- end of plan -->

Run ``make generate`` after a change of a blueprint, of prices or of the sizing of workers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from generated_files import fill_section, markdown_table, rewrite, write_all

from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.figures import ProcessSummary
from inference_blueprints.report.picture.picture import picture
from inference_blueprints.report.plan.plan_tables import plan_notes, plan_tables
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.memory import MEMORY, MemorySummary, kv_cells
from inference_blueprints.report.plan.sections.pools import POOLS, TOTALS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.report.tables import TextTable
from inference_blueprints.resources import root
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint, OnDemand, Purchase
from inference_catalog import Support
from inference_catalog.support_levels import NEVER_ON_HARDWARE
from inference_contracts.units import GIB

_LINES = "<!-- plan: written by scripts/write_blueprint_pages.py -->\n<!-- end of plan -->"
#: Tables of `blueprints plan` that are also on a page.
_FURTHER_SIZES = (
    *("KV cache outside the devices", "Elastic workers", "Capacity shift", "Broken and slow GPUs"),
    *("Near real time", "Kafka"),
)
_PRICES = ("Pools", "Cost of a month", "Price of tokens (simulated)", "Images")


def page_path(name: str) -> Path:
    """Return the page of a shipped blueprint.

    name: Name of the blueprint.
    """
    return root() / "docs" / "blueprints" / f"{name}.md"


def picture_path(name: str) -> Path:
    """Return the picture of a shipped blueprint."""
    return root() / "docs" / "images" / f"{name}.svg"


def page_text(name: str, page: str) -> str:
    """Return a page with a new generated part.

    Raises ValueError if the page does not have exactly one place for it.
    """
    return fill_section(page, "plan", "\n\n".join(_parts(name)))


def picture_text(name: str) -> str:
    """Return the picture of a shipped blueprint as an SVG document."""
    blueprint = load_blueprint(name).blueprint
    return picture(blueprint, build_plan(blueprint))


def _parts(name: str) -> Iterator[str]:
    """Yield picture, sizes and price as paragraphs of Markdown."""
    blueprint = load_blueprint(name).blueprint
    summary = summarise(blueprint, build_plan(blueprint))
    tables = {table.title: table for table in plan_tables(summary)}
    yield f"![What {name} builds: its network, cluster, pools and workers](../images/{name}.svg)"
    yield from _support(summary.support)
    yield "**Sizes**, as the serving plan has them:"
    yield markdown_table(_sizes(summary))
    yield (
        "Of a device: weights, what they leave for the KV cache, and what a token takes of that. Of a "
        "worker: tokens in its KV cache, and requests of the workload's mean length at once."
    )
    yield from _printed(tables, _FURTHER_SIZES)
    yield f"**Price**, as `blueprints plan {name} --full` prints it:"
    yield from _printed(tables, _PRICES)
    yield " ".join(plan_notes(summary))
    yield from _on_demand(blueprint, summary)


def _support(support: Support) -> Iterator[str]:
    """Yield the support level, and what it follows from."""
    yield f"**Support level**: [{support.level}](../support-levels.md), the lowest of what it uses."
    rows = tuple((each.name, each.level, each.proven) for each in support.features)
    yield markdown_table(TextTable("Support", ("uses", "level", "proven"), (), rows))
    if not support.on_hardware:
        yield NEVER_ON_HARDWARE


def _printed(tables: Mapping[str, TextTable], titles: Sequence[str]) -> Iterator[str]:
    """Yield the tables of the plan that a page shows."""
    for title in titles:
        if title in tables:
            yield markdown_table(tables[title])
            yield from tables[title].notes


def _sizes(summary: PlanSummary) -> TextTable:
    """Return one row per process."""
    memory = {(each.model, each.deployment): each for each in summary[MEMORY]}
    devices = {pool.name: pool.accelerator or "-" for pool in summary[POOLS]}
    return TextTable(
        "Sizes",
        ("process", "on"),
        (
            "replicas",
            "devices",
            "weights, GiB",
            "KV cache, GiB",
            "KV cache per token, KiB",
            "KV cache per worker, tokens",
            "concurrent requests",
        ),
        tuple(_row(process, memory, devices) for process in summary[PROCESSES]),
    )


def _row(
    process: ProcessSummary, memory: Mapping[tuple[str, str], MemorySummary], devices: Mapping[str, str]
) -> tuple[str, ...]:
    """Return a process with its memory, which is looked up by role if roles have separate workers."""
    names = (f"{process.deployment}/{process.name}", process.deployment)
    found = next((memory[process.model, name] for name in names if (process.model, name) in memory), None)
    label = f"{process.model}/{process.deployment}/{process.name}"
    if found is None or not process.accelerators:
        return (label, process.pool or "system nodes", process.replica_range, *("-",) * 6)
    return (
        label,
        f"{process.pool}: {devices[process.pool or '']}",
        process.replica_range,
        str(process.accelerators),
        f"{found.weights_bytes / GIB:.1f}",
        *kv_cells(found),
        f"{found.concurrent_requests:,}",
    )


def _on_demand(blueprint: Blueprint, summary: PlanSummary) -> Iterator[str]:
    """Yield the on-demand cost of nodes without a known price."""
    if not summary[TOTALS].without_used:
        return
    pools = [
        pool.model_copy(update={"purchase": Purchase(on_demand=OnDemand())}) for pool in blueprint.spec.pools
    ]
    spec = blueprint.spec.model_copy(update={"pools": pools})
    on_demand = blueprint.model_copy(update={"spec": spec})
    totals = summarise(on_demand, build_plan(on_demand))[TOTALS]
    if totals.usd_per_hour_used is not None and not totals.without_used:
        yield f"On demand the used nodes would cost {totals.usd_per_hour_used:,.2f} USD an hour."


def main() -> None:
    """Write every page and picture, and remove those of blueprints that are gone.

    Raises SystemExit if a blueprint has no page yet: people write the rest of it.
    """
    pages = {name: page_path(name) for name in shipped()}
    for name, page in pages.items():
        if not page.exists():
            sys.exit(
                f"docs/blueprints/{name}.md: is missing; describe what {name} teaches, when not to use it, "
                f"and add\n{_LINES}"
            )
        rewrite(page, partial(page_text, name))
    for gone in set((root() / "docs" / "blueprints").glob("*.md")) - set(pages.values()):
        gone.unlink()
    pictures = {picture_path(name): picture_text(name) for name in pages}
    write_all(pictures, (root() / "docs" / "images").iterdir())


if __name__ == "__main__":
    main()
