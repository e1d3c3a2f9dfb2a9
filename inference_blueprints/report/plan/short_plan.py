"""The plan in about ten lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from inference_blueprints.report.plan.section import Label, PlanSummary
from inference_blueprints.report.plan.sections import SECTIONS
from inference_blueprints.report.plan.sections.cost import month_in_short
from inference_blueprints.report.plan.sections.pools import POOLS, TOTALS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_contracts.errors import Problem

#: Columns of the labels.
_LABEL = 11
#: Widest line that is easy to read.
_WIDEST = 120
#: From this many devices on, the line says how a fleet is split.
_FLEET = 1000
#: Most warnings of the file that are shown.
_MOST_WARNINGS = 4
#: What follows in a warning is the consequence or the remedy, which `validate` prints.
_REST = re.compile(r"; |, so |: (?=[a-z])")
#: The space between a number and its unit, where a line must not end; and that after ``3 x``.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[^\s;,)]{1,3}(?:[\s;,)]|$))|(?<=\d x) ")


def headline(summary: PlanSummary) -> str:
    """Return the plan in one line: the platform, its devices and nodes, and the cost of a month.

    summary: The figures of the plan.
    Returns: Such as ``quickstart in us-west-2: 2 x l40s on g6e.2xlarge, 4,035 USD a month``.
    """
    pools = " + ".join(_devices(summary)) or "no nodes"
    return f"{summary.name} in {summary.region}: {pools}, {month_in_short(summary)}"


def warnings_of(summary: PlanSummary, file: str) -> list[Problem]:
    """Return what the plan warns of, for the whole file.

    file: The file as the user named it.
    """
    lines = (line for section in SECTIONS for line in section.in_short(summary))
    sentences = dict.fromkeys(text for label, text in lines if label is Label.WARNINGS)
    return [Problem(file, 0, 0, "", sentence, "warning") for sentence in sentences]


def short_lines(
    summary: PlanSummary, name_or_path: str, warnings: Sequence[Problem] = ()
) -> Iterator[tuple[str, str]]:
    """Yield label and text of each line below the first.

    summary: The figures of the plan.
    name_or_path: The blueprint as the user named it, for commands.
    warnings: Those of the file, and then the plan's own.
    """
    never = "" if any(each.on_hardware for each in summary.support.features) else "; never run on AWS"
    yield "uses", f"{', '.join(_features(summary))}{never}"
    texts: dict[Label, list[str]] = {label: [] for label in Label}
    for section in SECTIONS:
        for label, text in section.in_short(summary):
            texts[label].append(text)
    del texts[Label.WARNINGS]
    for label, parts in texts.items():
        if parts:
            yield label, "; ".join(parts)
    in_file = [_in_short(warning) for warning in warnings if warning.line]
    shown = [*(warning.message for warning in warnings if not warning.line), *in_file[:_MOST_WARNINGS]]
    if len(in_file) > _MOST_WARNINGS:
        shown.append(f"and {len(in_file) - _MOST_WARNINGS} more: blueprints validate {name_or_path}")
    for place, text in enumerate(shown or ["none"]):
        yield ("" if place else Label.WARNINGS), text
    devices = summary[TOTALS].accelerators_max
    fleet = f"; --fleet {devices} splits it into clusters" if devices >= _FLEET else ""
    yield "read on", f"blueprints plan {name_or_path} --full{fleet}; docs/planning.md"


def print_short_plan(
    summary: PlanSummary, console: Console, name_or_path: str, warnings: Sequence[Problem] = ()
) -> None:
    """Print the plan in about ten lines. No line is wider than the console, and no word is cut.

    name_or_path: The blueprint as the user named it, for commands.
    warnings: Those of the file, and the plan's own.
    """
    width = min(console.width, _WIDEST)
    for row in _rows(headline(summary), width, indent=" " * _LABEL):
        console.print(Text(row, style="bold"), soft_wrap=True)
    for label, text in short_lines(summary, name_or_path, warnings):
        for place, row in enumerate(_rows(text, width - _LABEL)):
            start = Text(("" if place else label).ljust(_LABEL), style="bold")
            console.print(start.append(Text(row, style="not bold")), soft_wrap=True)


def _rows(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text in rows. A number stays with its unit: textwrap ends no line at a no-break space."""
    kept_together = _BEFORE_UNIT.sub("\u00a0", text)
    rows = textwrap.wrap(kept_together, width, subsequent_indent=indent, break_on_hyphens=False)
    return [row.replace("\u00a0", " ") for row in rows]


def _devices(summary: PlanSummary) -> Iterator[str]:
    """Yield the devices that workers hold in each pool with nodes; a range if workers are elastic."""
    for pool in summary[POOLS]:
        if pool.reckoned_instance_type is None:
            continue
        held = [each for each in summary[PROCESSES] if each.pool == pool.name]
        least = sum(each.replicas_least * each.accelerators for each in held)
        most = pool.accelerators_used
        count = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        purchase = "" if pool.purchase == "onDemand" else f" ({pool.purchase})"
        yield f"{count} x {pool.accelerator or 'no device'} on {pool.reckoned_instance_type}{purchase}"


def _features(summary: PlanSummary) -> Iterator[str]:
    """Yield the names of the features that the blueprint uses."""
    for feature in summary.support.features:
        yield f"{feature.name} (experimental)" if feature.level == "experimental" else feature.name


def _in_short(warning: Problem) -> str:
    """Return what was found, without what follows from it."""
    message = warning.message
    for match in _REST.finditer(message):
        if message[: match.start()].count("'") % 2 == 0:
            message = message[: match.start()]
            break
    key = warning.path.rpartition(".")[2]
    # Such as ``replicas``, for which a message like "got 30, which serve …" has no word.
    subject = f"{key}: " if key and message.startswith(("got ", "is ", "must ")) else ""
    return f"line {warning.line}: {subject}{message}"
