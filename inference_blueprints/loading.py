"""From a file to a blueprint that can be used: text, types, rules and serving checks, every error at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from inference_blueprints.errors import BlueprintError, Finding, Problem
from inference_blueprints.serving import checks
from inference_blueprints.spec import composer, shipped, source, typed
from inference_blueprints.spec.lock.beside import Beside
from inference_blueprints.spec.lock.lock import Lock, with_commits
from inference_blueprints.spec.lock.pins import NO_PINS, Pins, pinned_version
from inference_blueprints.spec.partial import Undecidable
from inference_blueprints.spec.rules import table
from inference_blueprints.spec.sections import Sections
from inference_blueprints.spec.types import Blueprint


@dataclass(frozen=True, slots=True)
class LoadedBlueprint:
    """A blueprint without errors.

    Parameters
    ----------
    blueprint
        What the file says, with what its lock holds.
    file
        The file as messages name it.
    warnings
        What is allowed and yet doubtful, in the order of the file.
    written
        What the file says, without its lock.
    lock
        The lock; None where there is none.
    """

    blueprint: Blueprint
    file: str
    warnings: tuple[Problem, ...]
    written: Blueprint
    lock: Lock | None


def load_blueprint(name_or_path: str) -> LoadedBlueprint:
    """Load a shipped blueprint or a file, with the lock and the charts that lie beside it.

    Parameters
    ----------
    name_or_path
        Shipped name such as ``quickstart-g6e``, or path of a YAML file.

    Raises
    ------
    UserError
        If nothing has that name.
    BlueprintError
        If the file or its lock cannot be used, with every problem found.
    """
    path = shipped.find(name_or_path)
    text = source.read(path, str(path))
    place = Beside(path)
    try:
        loaded = parse_blueprint(text, str(path), place.pins())
    except BlueprintError as error:
        raise BlueprintError([*error.problems, *place.problems]) from error
    if place.problems:
        raise BlueprintError(place.problems)
    return replace(loaded, warnings=(*loaded.warnings, *place.warnings))


def parse_blueprint(text: str, file: str, pins: Pins = NO_PINS) -> LoadedBlueprint:
    """Load a blueprint from its text.

    Parameters
    ----------
    text
        YAML.
    file
        Its name in messages.
    pins
        What it runs that others release.

    Raises
    ------
    BlueprintError
        If the text cannot be used, with every problem found.
    """
    parsed = composer.parse(text, file)
    version = typed.other_version(parsed)
    if version:
        raise BlueprintError([*parsed.problems, version])
    checked = typed.validate(parsed)
    found = [parsed.tie(finding) for finding in _findings(checked, pins)]
    errors = [problem for problem in found if problem.severity == "error"]
    problems = [*parsed.problems, *checked.problems, *errors]
    if problems or checked.blueprint is None:
        raise BlueprintError(problems)
    blueprint = with_commits(checked.blueprint, pins.commits).with_releases(pins.releases)
    return LoadedBlueprint(blueprint, file, tuple(sorted(found)), checked.blueprint, pins.lock)


def _findings(checked: typed.Typed, pins: Pins) -> list[Finding]:
    """Return what the rules and the serving checks find in whatever fits the types."""
    found = table.findings(checked.sections, checked.partial)
    serving = [finding for view in (*checked.partial, checked.sections) for finding in _serving(view, pins)]
    return [*found, *pinned_version(checked.sections.cluster, pins), *dict.fromkeys(serving)]


def _serving(sections: Sections, pins: Pins) -> Iterator[Finding]:
    """Yield what the serving checks find, as far as there is enough of the blueprint for a verdict."""
    with suppress(Undecidable):
        blueprint = None if sections.about == "pools" else sections.blueprint()
        for finding in checks.findings(blueprint.with_releases(pins.releases)) if blueprint else ():
            yield replace(finding, path=sections.path_in_file(finding.path))
