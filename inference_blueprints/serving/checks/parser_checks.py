"""Checks that the parsers that a model names exist in the stack's release."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.types import NO_PARSER
from inference_blueprints.spec.wording import quote, suggestion
from inference_contracts.errors import Finding


def parser_findings(
    model: spec.Model, engine: catalog.Engine, model_path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Check the names of a model's parsers against those of the stack's release.

    Parameters
    ----------
    engine
        Release of the model's engine.
    model_path
        Path of the model in the blueprint.

    Yields
    ------
    Finding
        An error for each parser that is unknown, or is also set by an engine argument.
    """
    if model.parsers is None:
        return
    stack = STACKS[model.stack.chosen]
    given = {"reasoning": model.parsers.reasoning, "toolCall": model.parsers.tool_call}
    flags = stack.parser_flags(engine.name)
    if flags is None:
        message = f"the server of {quote(engine.name)} has no argument that names a parser; remove it"
        yield Finding((*model_path, "parsers"), message)
        return
    for key, argument in flags.keys.items():
        name, path = given[key], (*model_path, "parsers", key)
        if name is None:
            continue
        if argument in model.engine.arguments:
            message = f"got {quote(name)}, and the engine argument '{argument}' too; remove one of them"
            yield Finding(path, message)
            continue
        flag = stack.flags(engine).get(f"--{argument}")
        known = (NO_PARSER, *flag.choices) if flag else (NO_PARSER,)
        if name not in known:
            message = (
                f"got {quote(name)}, which is not a parser of '{argument}'{suggestion(name, known)}; "
                f"allowed are {', '.join(known)}"
            )
            yield Finding(path, message)
