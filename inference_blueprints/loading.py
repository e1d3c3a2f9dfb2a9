"""From a file to a blueprint that can be used: text, types, rules and serving checks, every error at once."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.errors import BlueprintError, Problem
from inference_blueprints.spec import document, shipped, source, typed
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
    file = str(path)
    parsed = document.parse(source.read(path, file), file)
    result = typed.validate(parsed)
    problems = [*parsed.problems, *result.problems]
    if problems or result.blueprint is None:
        raise BlueprintError(problems)
    return LoadedBlueprint(result.blueprint, file, ())
