"""Parsers of a model's answers."""

from __future__ import annotations

from inference_blueprints.spec.types.section import ParserName, Section

#: Value of a key that switches a parser off.
NO_PARSER = "none"


class Parsers(Section):
    """Parsers of answers. Each key that is left out takes the model's parser in the catalogue."""

    reasoning: ParserName | None = None
    """Parser that separates reasoning from the answer, named as in the stack's release, or `none`."""
    tool_call: ParserName | None = None
    """Parser that turns text into tool calls, named as in the stack's release, or `none`."""
