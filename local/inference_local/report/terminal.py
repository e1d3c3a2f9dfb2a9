"""Prints the report to a terminal, or as plain text to other outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inference_blueprints.measure.statistics.figure_text import (
    amount,
    hit_ratio,
    latency_rows,
    milliseconds,
)
from inference_local.real_time.real_time_outcome import real_time_lines
from inference_local.report.controller_text import (
    health_is_bad,
    health_lines,
    shift_is_bad,
    shift_lines,
)
from inference_local.report.report_text import (
    batch_job,
    by_workers,
    cost_lines,
    objective_lines,
    replayed_lines,
    scaling_lines,
    worker_loss,
)
from inference_local.report.report_types import ModelReport, Report
from inference_local.serving.platform_parts import PlatformPart, Replacement, State
from inference_local.streaming.streaming_outcome import streaming_lines

#: Below this width, in characters, three columns split names and leave too little room for sentences.
_COLUMNS_WIDTH = 80
_STYLES: dict[State, str] = {
    "real": "green",
    "stand-in": "blue",
    "emulated": "cyan",
    "simulated": "yellow",
    "stubbed": "magenta",
}


def print_report(report: Report, console: Console) -> None:
    """Print a report.

    console: Output. The `curl` line is not wrapped, so that it can be copied.
    """
    _print_parts(report.parts, console)
    if report.replacements:
        console.print(Text("Settings of the plan that have another value on this machine", style="bold"))
        for workers, rows in by_workers(report.replacements):
            console.print(Text(f"{', '.join(workers)}:"))
            _print_replacements(rows, console)
    for model in report.models:
        _print_model(model, console, simulated=report.simulated, timed=report.timed)
    for line, is_bad in _outcomes(report):
        console.print(Text(line, style="red" if is_bad else ""))


def _outcomes(report: Report) -> Iterator[tuple[str, bool]]:
    """Yield sentences about what happened besides the replay, and whether it went wrong."""
    for loss in report.worker_losses or ():
        yield worker_loss(loss), bool(loss.lost)
    if report.scaling:
        yield from ((line, bool(report.scaling.lost)) for line in scaling_lines(report.scaling))
    if report.controllers:
        shift, health = report.controllers.shift, report.controllers.health
        yield from ((line, shift_is_bad(shift)) for line in shift_lines(shift))
        yield from ((line, health_is_bad(health)) for line in health_lines(health))
    if report.real_time:
        lines = real_time_lines(report.real_time, simulated=report.simulated)
        yield from ((line, report.real_time.is_bad) for line in lines)
    if report.streaming:
        lines = streaming_lines(report.streaming, simulated=report.simulated)
        yield from ((line, report.streaming.is_bad) for line in lines)
    for outcome in report.batch or ():
        yield batch_job(outcome, simulated=report.simulated), not outcome.is_whole


def _print_parts(parts: Sequence[PlatformPart], console: Console) -> None:
    """Print the parts: which are real, emulated, simulated or stubbed."""
    rows = [
        (Text(part.name), Text(part.state, style=_STYLES[part.state]), Text(part.detail)) for part in parts
    ]
    _print_explained(("part", "state", "detail"), rows, console)


def _print_replacements(replacements: Sequence[Replacement], console: Console) -> None:
    """Print exceptions."""
    rows = [
        (Text(row.setting), Text(f"{row.planned} → {row.here}"), Text(row.reason)) for row in replacements
    ]
    _print_explained(("setting", "planned → here", "reason"), rows, console)


def _print_explained(
    headings: tuple[str, str, str], rows: Sequence[tuple[Text, Text, Text]], console: Console
) -> None:
    """Print names, values and sentences: as columns, or as a block per row if columns would split words."""
    # Values do not wrap. A long one, such as an address, would leave no room for the other columns.
    longest = max((value.cell_len for _, value, _ in rows), default=0)
    if console.width >= _COLUMNS_WIDTH and longest <= console.width // 3:
        table = _table(*headings)
        table.columns[1].no_wrap = True
        for row in rows:
            table.add_row(*row)
        console.print(table)
        return
    console.print()
    for name, value, sentence in rows:
        console.print(Text.assemble(name, ": ", value))
        console.print(Padding(sentence, (0, 0, 0, 2)))
    console.print()


def _print_model(model: ModelReport, console: Console, *, simulated: bool, timed: bool) -> None:
    """Print the figures of one model."""
    measurement = model.measurement
    console.print(Text(model.name, style="bold"))
    _print_raw(console, [f"endpoint: {model.endpoint}", model.curl, ""])
    sent = f"{amount(measurement.requests, 'request')}, {amount(measurement.failures, 'failure')}"
    if measurement.images:
        sent = f"{sent}, {amount(measurement.images, 'image')}"
    console.print(Text(sent))
    for reason, count in measurement.failure_reasons.items():
        detail = model.failure_details.get(reason)
        console.print(Text(f"  {count} x {reason}" + (f", first: {detail}" if detail else ""), style="red"))
    if timed:
        _print_latencies(model, console, simulated=simulated)
    if model.replayed.images is None:
        console.print(Text(f"prefix cache hits: {hit_ratio(measurement)}"))
    if timed and model.replayed.images is None:
        for name, line in cost_lines(measurement):
            console.print(Text(f"{name}{' (simulated)' if simulated else ''}: {line}"))
    console.print(Text(measurement.cost_note, style="dim"))
    for line in replayed_lines(model.replayed):
        console.print(Text(line, style="dim"))
    for warning in model.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))


def _print_latencies(model: ModelReport, console: Console, *, simulated: bool) -> None:
    """Print latencies, and whether they meet the objectives."""
    latencies = _table(f"latency, ms{' (simulated)' if simulated else ''}", "p50", "p90", "p99")
    for name, row in latency_rows(model.measurement):
        latencies.add_row(name, *map(milliseconds, (row.p50, row.p90, row.p99)))
    console.print(latencies)
    for line in objective_lines(model):
        console.print(Text(f"objective {line}"))


def _table(*columns: str) -> Table:
    """Return an empty table whose long cells wrap."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _print_raw(console: Console, lines: Iterable[str]) -> None:
    """Print lines without wrapping."""
    for line in lines:
        console.print(Text(line), soft_wrap=True)
