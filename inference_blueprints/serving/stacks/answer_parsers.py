"""The parsers that separate reasoning and tool calls from a model's answers."""

from __future__ import annotations

import inference_catalog as catalog
from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.engines.own_server import ParserFlags
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import NO_PARSER, Parsers
from inference_catalog import ParserNames

#: The engine's own argument. Under Dynamo, it tells the engine where reasoning ends and a grammar begins
#: (Dynamo documentation, "Reasoning Parsing (Dynamo)"). Dynamo itself parses.
ENGINE_REASONING = "reasoning-parser"


def parser_names(resolved: ResolvedWorkers, program: str) -> ParserNames:
    """Return the parsers of a program: the blueprint's, else those of the model's catalogue entry.

    A model that writes no text has none.
    """
    if resolved.model.task != "generate":
        return ParserNames()
    entry = resolved.shape.answer_format
    known = catalog.answer_formats()[entry].parsers.get(program) if entry else None
    planned, given = known or ParserNames(), resolved.model.parsers or Parsers()
    return ParserNames(
        reasoning=_selected(given.reasoning, planned.reasoning),
        tool_call=_selected(given.tool_call, planned.tool_call),
    )


def parser_arguments(resolved: ResolvedWorkers, flags: ParserFlags) -> dict[str, Argument]:
    """Return the arguments that name the parsers of a stack's program."""
    names = parser_names(resolved, flags.program)
    each = {flags.reasoning: names.reasoning, flags.tool_call: names.tool_call}
    return {argument: name for argument, name in each.items() if name}


def engine_reasoning(resolved: ResolvedWorkers) -> dict[str, Argument]:
    """Return the engine's own reasoning parser beside Dynamo's; empty if the user names another for Dynamo.

    Dynamo's name says nothing about the engine's. With another parser, the user sets the argument.
    """
    if resolved.model.parsers and resolved.model.parsers.reasoning:
        return {}
    name = parser_names(resolved, resolved.model.engine.chosen).reasoning
    return {ENGINE_REASONING: name} if name else {}


def vocabulary_hosts(resolved: ResolvedWorkers, flags: ParserFlags) -> tuple[str, ...]:
    """Return the hosts from which the parsers in use download a vocabulary."""
    arguments = {**parser_arguments(resolved, flags), **resolved.model.engine.arguments}
    used = {arguments.get(flags.reasoning), arguments.get(flags.tool_call)} - {None}
    formats = catalog.answer_formats().values()
    needed = {
        each.vocabulary_host
        for each in formats
        if used & {each.parsers[flags.program].reasoning, each.parsers[flags.program].tool_call}
    }
    return tuple(sorted(host for host in needed if host))


def _selected(given: str | None, planned: str | None) -> str | None:
    """Return the name that counts; None if the parser is off."""
    return None if given == NO_PARSER else given or planned
