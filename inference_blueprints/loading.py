"""Loads a blueprint: reads the text, checks types, rules and serving, and reports all errors at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from inference_blueprints.render.cluster_targets import planned_target_findings, target_findings
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.spec import composer, source, validation
from inference_blueprints.spec.capacity_dates import dated_findings
from inference_blueprints.spec.chat_template import read_template
from inference_blueprints.spec.invalid_values import decidable
from inference_blueprints.spec.lock.adjacent_files import NO_PINS, AdjacentFiles, Pins, pinned_version
from inference_blueprints.spec.lock.lock import Lock, with_commits
from inference_blueprints.spec.model_files import with_models
from inference_blueprints.spec.rule_table import rule_findings
from inference_blueprints.spec.sections.models.chats import stated_templates, with_chats
from inference_blueprints.spec.sections.workloads.rules import stated_days, with_days
from inference_blueprints.spec.support_dates import support_findings
from inference_blueprints.spec.types import Blueprint, Chat, Day
from inference_blueprints.spec.wording import Path as Place
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import BlueprintError, Finding, Problem, UserError
from inference_contracts.records import dataclass

#: Name of standard input in messages.
STANDARD_INPUT = "standard input"


@dataclass(frozen=True, slots=True)
class LoadedBlueprint:
    """A blueprint without errors."""

    blueprint: Blueprint
    """The blueprint with the commits and releases of its lock."""
    file: str
    """Name of the file in messages."""
    warnings: tuple[Problem, ...]
    """Warnings, in the order of the file."""
    written: Blueprint
    """The blueprint as written, without its lock."""
    lock: Lock | None
    """The lock; None if there is none."""
    text: str
    """The file's text."""


def load_blueprint(name_or_path: str, *, now: datetime | None = None) -> LoadedBlueprint:
    """Load a shipped blueprint or a file, with the lock and the charts next to it.

    Parameters
    ----------
    name_or_path
        Shipped name such as ``quickstart-g6e``, or path of a YAML file.
    now
        Present time, with a time zone, for warnings about dates; without it, dates are not compared.

    Raises
    ------
    UserError
        If no blueprint or file has this name.
    BlueprintError
        If the file or its lock cannot be used, with every problem found.
    """
    path = source.find(name_or_path)
    text = source.read(path, str(path))
    adjacent = AdjacentFiles(path)
    try:
        loaded = parse_blueprint(text, str(path), adjacent.pins(), now=now)
    except BlueprintError as error:
        raise BlueprintError([*error.problems, *adjacent.problems]) from error
    if adjacent.problems:
        raise BlueprintError(adjacent.problems)
    return replace(loaded, warnings=(*loaded.warnings, *adjacent.warnings))


def load_standard_input(*, now: datetime | None = None) -> LoadedBlueprint:
    """Load a blueprint from standard input, where it has no lock and no charts next to it.

    Parameters
    ----------
    now
        Present time, with a time zone, for warnings about dates; without it, dates are not compared.

    Raises
    ------
    BlueprintError
        If the text cannot be used, with every problem found.
    """
    return parse_blueprint(source.read_standard_input(STANDARD_INPUT), STANDARD_INPUT, now=now)


def parse_blueprint(
    text: str, file: str, pins: Pins = NO_PINS, *, now: datetime | None = None
) -> LoadedBlueprint:
    """Load a blueprint from its text.

    Parameters
    ----------
    text
        YAML.
    file
        Its name in messages. Files that the text names are beside it.
    pins
        Pinned versions of third-party software.
    now
        Present time, with a time zone, for warnings about dates; without it, dates are not compared.

    Raises
    ------
    BlueprintError
        If the text cannot be used, with every problem found.
    """
    parsed = composer.parse(text, file)
    version = validation.other_version(parsed)
    if version:
        raise BlueprintError([*parsed.problems, version])
    checked = validation.validate(parsed)
    files = _NamedFiles(file)
    unread = list(decidable(files.read, checked.blueprint))
    checked = replace(checked, blueprint=files.known_to(with_models(checked.blueprint, pins.models)))
    found = [parsed.tie(finding) for finding in [*unread, *_findings(checked.blueprint, pins, now)]]
    errors = [problem for problem in found if problem.severity == "error"]
    problems = [*parsed.problems, *checked.problems, *errors]
    if problems or not checked.is_complete:
        raise BlueprintError(problems)
    blueprint = with_commits(checked.blueprint, pins.commits).with_releases(pins.releases)
    planned = [
        parsed.tie(finding) for finding in [*planned_target_findings(blueprint), *_door_findings(blueprint)]
    ]
    if any(problem.severity == "error" for problem in planned):
        raise BlueprintError(planned)
    found += planned
    return LoadedBlueprint(blueprint, file, tuple(sorted(found)), checked.blueprint, pins.lock, text)


def _findings(blueprint: Blueprint, pins: Pins, now: datetime | None) -> list[Finding]:
    """Return what the rules and the serving checks find in a blueprint, which may have invalid values."""

    def pinned(blueprint: Blueprint) -> Iterator[Finding]:
        return pinned_version(blueprint.spec.cluster, pins)

    def serving(blueprint: Blueprint) -> Iterator[Finding]:
        return serving_findings(blueprint.with_releases(pins.releases))

    def dated(blueprint: Blueprint) -> Iterator[Finding]:
        if now:
            yield from dated_findings(blueprint, now)
            yield from support_findings(blueprint, now)

    return [
        *rule_findings(blueprint),
        *decidable(dated, blueprint),
        *decidable(pinned, blueprint),
        *dict.fromkeys(decidable(serving, blueprint)),
        *decidable(target_findings, blueprint),
    ]


def _door_findings(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield what the plan says about the front door of a blueprint without errors."""
    if blueprint.spec.front_door:
        # Few blueprints have one.
        from inference_blueprints.serving.checks.door_checks import door_findings
        from inference_blueprints.serving.plan import build_plan

        yield from door_findings(blueprint.spec, build_plan(blueprint))


class _NamedFiles:
    """Files that a blueprint names: recorded rates, and chat templates.

    blueprint_file: Name of the blueprint's file.
    """

    def __init__(self, blueprint_file: str) -> None:
        self._file = blueprint_file
        self._days: dict[Place, Day] = {}
        self._chats: dict[Place, Chat] = {}

    def read(self, blueprint: Blueprint) -> Iterator[Finding]:
        """Read the files; yield why one cannot be used."""
        for path, day in stated_days(blueprint.spec):
            if day.rates is None or path in self._days:
                continue
            try:
                self._days[path] = self._read_rates(day, day.rates)
            except UserError as error:
                yield from (Finding((*path, "rates"), line) for line in str(error).splitlines())
        for path, chat, name in stated_templates(blueprint.spec):
            if path in self._chats:
                continue
            try:
                beside = self._beside(name, "or leave it out")
                self._chats[path] = chat.with_text(read_template(beside))
            except UserError as error:
                yield Finding((*path, "template"), str(error))

    def _beside(self, name: str, instead: str) -> Path:
        """Return the path of a named file.

        instead: What to do if there can be none.
        """
        if "://" in name:
            raise UserError(
                f"got {quote(name)}, expected the path of a file beside the blueprint; nothing is read from "
                "other places: download it, for instance with `aws s3 cp`, and give its path"
            )
        if self._file == STANDARD_INPUT:
            raise UserError(
                f"got {quote(name)}, but a blueprint from standard input has no files beside it; save it as "
                f"a file, {instead}"
            )
        return Path(self._file).parent / name

    def _read_rates(self, day: Day, name: str) -> Day:
        from inference_blueprints.serving.autoscaling.request_rates import RequestRates

        rates = RequestRates.read(self._beside(name, "or give 'hours'"))
        try:
            means, peaks = rates.by_hour()
        except UserError as error:
            raise UserError(f"{name}: {error}") from error
        return day.with_rates(
            tuple(each / rates.peak for each in means), tuple(each / rates.peak for each in peaks)
        )

    def known_to(self, blueprint: Blueprint) -> Blueprint:
        """Return the blueprint, which may have invalid values, with what its files say."""
        if not self._days and not self._chats:
            return blueprint
        spec = with_chats(with_days(blueprint.spec, self._days), self._chats)
        return blueprint.model_copy(update={"spec": spec})
