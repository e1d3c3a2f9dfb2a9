"""Write the tables of docs/batch.md on the quotas for a day of 300 million requests.

The tables are between ``<!-- quotas -->`` and ``<!-- end of quotas -->``. They contain the results of
`blueprints
plan` for the reference day. ``make generate`` runs this script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from generated_files import fill_section, rewrite

from inference_blueprints.report.plan.sections.batch import day_row, figure, share, summarise_days
from inference_blueprints.report.sizing.batch_day import BatchDay
from inference_blueprints.report.sizing.batch_quotas import service_quota_uses

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "batch.md"
REGION: Final = "us-west-2"
#: One queue with the maximum number of workers per model.
REFERENCE: Final = BatchDay(
    queue="nightly",
    model="captions",
    requests=300_000_000,
    requests_per_job=2_500_000,
    input_tokens=2000,
    output_tokens=150,
    workers=100,
    publishes=True,
)


def page_text(page: str) -> str:
    """Return the page with new tables."""
    tables = "\n\n".join("\n".join(table) for table in (_day(), _quotas()))
    return fill_section(page, "quotas", tables)


def _day() -> Iterator[str]:
    """Yield the lines of the table of the reference day."""
    yield (
        "| requests per second | jobs | segments | shards, maximum | concurrent requests, maximum "
        "| seconds per request, maximum |"
    )
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    for day in summarise_days([REFERENCE], {}):
        yield _line(day_row(day)[1:])


def _quotas() -> Iterator[str]:
    """Yield the lines of the table of quotas."""
    yield "| Quota | Use, maximum | Default quota | Share | Adjustable | Counted |"
    yield "|---|---:|---:|---:|---|---|"
    for use in service_quota_uses([REFERENCE], REGION):
        yield _line(
            (
                f"{use.service}: {use.quota_name}",
                figure(use.used, use.unit),
                figure(use.quota, use.unit),
                share(use),
                (use.code or "yes") if use.adjustable else "no",
                use.basis,
            )
        )


def _line(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
