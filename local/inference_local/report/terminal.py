"""Prints endpoints and reports to a terminal, or as plain text to other outputs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inference_blueprints.measure.statistics import (
    amount,
    hit_ratio,
    latency_rows,
    milliseconds,
)
from inference_local.front_door.front_door_outcome import front_door_lines, short_front_door
from inference_local.real_time.real_time_outcome import real_time_lines
from inference_local.report.report_text import (
    batch_job,
    by_workers,
    cost_lines,
    health_is_bad,
    health_lines,
    objective_lines,
    replayed_lines,
    scaling_lines,
    shift_is_bad,
    shift_lines,
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


#: Where the texts of a short report begin, in characters.
_TEXT_COLUMN = 12
_FEW_NAMES = 6


@dataclass(frozen=True, slots=True)
class Answering:
    """A model that answers."""

    name: str
    base_url: str
    """Base URL of its OpenAI API, ending in ``/v1``."""
    curl: str
    """A POSIX shell command that asks it."""


def print_answering(
    models: Sequence[Answering], how: str, seconds: float, logs: str, console: Console
) -> None:
    """Print the endpoint of each model, and a command that asks the first one.

    how: What is real and what is simulated.
    seconds: Time from the start of the command until all answered.
    logs: Folder with their logs.
    """
    names = ", ".join(model.name for model in models)
    verb = "answers" if len(models) == 1 else "answer"
    console.print()
    answering, after = f"{names} {verb} ({how})", f"{seconds:.1f} s"
    if _room(answering, after, console) > 1:
        _print_with_end(answering, after, console)
    else:
        console.print(Text(f"{names} {verb} after {after} ({how})"))
    first, *others = models
    _print_with_end(first.base_url, f"log: {logs}", console)
    for model in others:
        _print_raw(console, [f"{model.base_url}  {model.name}"])
    console.print()
    _print_raw(console, [first.curl])
    console.print()


def print_summary(report: Report, path: Path, console: Console, further: Sequence[tuple[str, str]]) -> None:
    """Print a report in about ten lines. The rest stands in its file.

    path: The report's page.
    further: Further lines: a word, and a sentence.
    """
    for label, text, is_bad in _short_lines(report):
        _print_labelled(label, text, console, style="red" if is_bad else "")
    _print_labelled("report", str(path), console)
    for label, text in further:
        _print_labelled(label, text, console)


def _short_lines(report: Report) -> Iterator[tuple[str, str, bool]]:
    """Yield a word, a sentence, and whether something went wrong."""
    yield _short_requests(report)
    mark = " (simulated)" if report.simulated else ""
    measured = report.measurement
    is_text = any(model.replayed.images is None for model in report.models)
    if report.timed and is_text:
        for label, row in (
            ("first token", measured.ttft_ms),
            ("per token", measured.time_per_output_token_ms),
        ):
            yield label, f"p50 {milliseconds(row.p50)} ms, p99 {milliseconds(row.p99)} ms{mark}", False
        price = measured.price_per_million_tokens_usd
        if price is not None:
            yield "price", f"{price.input_and_output:.2f} USD per million tokens at this load{mark}", False
    elif report.timed:
        row = measured.end_to_end_ms
        yield "images", f"p50 {milliseconds(row.p50)} ms, p99 {milliseconds(row.p99)} ms{mark}", False
    objectives = [each for model in report.models for each in model.objectives]
    if report.timed and objectives:
        met = sum(each.met is True for each in objectives)
        yield "objectives", f"{met} of {len(objectives)} met{mark}", met < len(objectives)
    yield from _short_outcomes(report)
    warnings = [warning for model in report.models for warning in model.warnings]
    if warnings:
        yield "warnings", f"{len(warnings)}: {warnings[0]}", True
    real = [part for part in report.parts if part.state == "real"]
    yield "real", _names(real), False
    others = {
        part.state: [each for each in report.parts if each.state == part.state] for part in report.parts
    }
    yield (
        "not real",
        "; ".join(f"{_names(parts)} ({state})" for state, parts in others.items() if state != "real"),
        False,
    )


def _short_requests(report: Report) -> tuple[str, str, bool]:
    measured = report.measurement
    text = f"{measured.requests:,}, {amount(measured.failures, 'failure')}"
    if measured.failure_reasons:
        text += f" ({', '.join(f'{count} x {reason}' for reason, count in measured.failure_reasons.items())})"
    losses = [loss for loss in report.worker_losses or () if loss.killed]
    if losses:
        killed, workers = sum(loss.killed for loss in losses), sum(loss.workers for loss in losses)
        text += (
            f"; {killed} of {amount(workers, 'worker')} killed: "
            f"{amount(sum(loss.moved for loss in losses), 'answer')} moved, "
            f"{sum(loss.lost for loss in losses)} lost"
        )
    return "requests", text, bool(measured.failures or sum(loss.lost for loss in losses))


def _short_outcomes(report: Report) -> Iterator[tuple[str, str, bool]]:
    """Yield a line for each thing besides the replay."""
    if scaling := report.scaling:
        text = f"{scaling.workers_min} to {amount(scaling.workers_max, 'worker')} followed the load"
        lost = f"{amount(scaling.cut_streams, 'stream')} cut, {amount(scaling.lost, 'request')} lost"
        yield "scaling", f"{text}; {lost}", bool(scaling.lost)
    if controllers := report.controllers:
        shift, health = controllers.shift, controllers.health
        yield (
            "shift",
            f"{amount(shift.changes, 'change')} between interactive requests and batch",
            shift_is_bad(shift),
        )
        slow = f"{health.found} of {health.injected} slow workers found, {health.replaced} replaced"
        yield "GPU health", slow, health_is_bad(health)
    if real_time := report.real_time:
        text = (
            f"SKIPPED. {real_time.skipped}"
            if real_time.skipped
            else f"{amount(real_time.requests, 'page')}, {amount(real_time.fallbacks, 'fallback')}; p99 "
            f"{milliseconds(real_time.p99_ms)} ms, deadline {milliseconds(real_time.deadline_ms)} ms"
            + (" (simulated)" if report.simulated else "")
        )
        yield "real time", text, real_time.is_bad
    if streaming := report.streaming:
        text = (
            f"SKIPPED. {streaming.skipped}"
            if streaming.skipped
            else f"{amount(streaming.events, 'event')}, {amount(streaming.signals, 'signal')}, "
            f"{streaming.lost} lost, {streaming.duplicated} duplicated"
        )
        yield "streaming", text, streaming.is_bad
    if door := report.front_door:
        yield "front door", short_front_door(door, simulated=report.simulated), door.is_bad
    for job in report.batch or ():
        text = f"{job.queue}: {amount(job.requests, 'request')}, {job.completed} answered, {job.lost} lost"
        text += f"; {amount(job.workers_killed, 'worker')} killed" if job.workers_killed else ""
        yield "batch", text, not job.is_whole


def _names(parts: Sequence[PlatformPart]) -> str:
    """Return the names of parts, each once, and how many types of resources are among them."""
    names = [part.name.partition(" of ")[0] for part in parts if "::" not in part.name]
    unique = list(dict.fromkeys(names))
    types = sum("::" in part.name for part in parts)
    shown = unique[:_FEW_NAMES]
    if len(unique) > _FEW_NAMES:
        shown.append(f"{len(unique) - _FEW_NAMES} more")
    if types:
        shown.append(amount(types, "resource type"))
    return ", ".join(shown)


def _print_labelled(label: str, text: str, console: Console, style: str = "") -> None:
    """Print a word and a sentence, wrapped below its own beginning. Long addresses stay whole."""
    lines = textwrap.wrap(
        text,
        max(console.width - 1 - _TEXT_COLUMN, _TEXT_COLUMN),
        break_long_words=False,
        break_on_hyphens=False,
    )
    for number, line in enumerate(lines or [""]):
        console.print(
            Text.assemble(f"{'' if number else label:<{_TEXT_COLUMN}}", (line, style)), soft_wrap=True
        )


def _print_with_end(text: str, end: str, console: Console) -> None:
    """Print a text, with a few words at the right if both fit on a line."""
    room = _room(text, end, console)
    if room > 1:
        _print_raw(console, [f"{text}{'':{room}}{end}"])
    else:
        console.print(Text(text))
        _print_raw(console, [end])


def _room(text: str, end: str, console: Console) -> int:
    """Return the columns between a text and the words at the right."""
    return console.width - 1 - len(text) - len(end)


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
    if report.front_door:
        lines = front_door_lines(report.front_door, simulated=report.simulated)
        yield from ((line, report.front_door.is_bad) for line in lines)
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
    latencies = _table(f"latency, ms{' (simulated)' if simulated else ''}", "p50", "p90", "p95", "p99")
    for name, row in latency_rows(model.measurement):
        latencies.add_row(name, *map(milliseconds, (row.p50, row.p90, row.p95, row.p99)))
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
