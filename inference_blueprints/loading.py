"""From a file to a blueprint that can be used: text, types, rules and serving checks, every error at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from inference_blueprints.errors import BlueprintError, Finding, Problem
from inference_blueprints.serving import checks
from inference_blueprints.spec import composer, shipped, source, typed
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
        What the file says.
    file
        The file as messages name it.
    warnings
        What is allowed and yet doubtful, in the order of the file.
    """

    blueprint: Blueprint
    file: str
    warnings: tuple[Problem, ...]


def load_blueprint(name_or_path: str) -> LoadedBlueprint:
    """Load a shipped blueprint or a file.

    Parameters
    ----------
    name_or_path
        Shipped name such as ``quickstart-g6e``, or path of a YAML file.

    Raises
    ------
    UserError
        If nothing has that name.
    BlueprintError
        If the file cannot be used, with every problem found.
    """
    path = shipped.find(name_or_path)
    return parse_blueprint(source.read(path, str(path)), str(path))


def parse_blueprint(text: str, file: str) -> LoadedBlueprint:
    """Load a blueprint from its text.

    Parameters
    ----------
    text
        YAML.
    file
        Its name in messages.

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
    found = [parsed.tie(finding) for finding in _findings(checked)]
    errors = [problem for problem in found if problem.severity == "error"]
    problems = [*parsed.problems, *checked.problems, *errors]
    if problems or checked.blueprint is None:
        raise BlueprintError(problems)
    return LoadedBlueprint(checked.blueprint, file, tuple(sorted(found)))


def _findings(checked: typed.Typed) -> list[Finding]:
    """Return what the rules and the serving checks find in whatever fits the types."""
    found = table.findings(checked.sections, checked.partial)
    serving = [finding for view in (*checked.partial, checked.sections) for finding in _serving(view)]
    return [*found, *dict.fromkeys(serving)]


def _serving(sections: Sections) -> Iterator[Finding]:
    """Yield what the serving checks find, as far as there is enough of the blueprint for a verdict."""
    with suppress(Undecidable):
        blueprint = None if sections.about == "pools" else sections.blueprint()
        for finding in checks.findings(blueprint) if blueprint else ():
            yield replace(finding, path=sections.path_in_file(finding.path))
