"""JSONata in a state machine: each `{% … %}` of a state's fields, evaluated as Step Functions does.

Rules: https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html. Most expressions are plain
paths. These are read without the interpreter, which takes a thousand times as long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonata import Jsonata

_PATH = re.compile(r"\$(\w*)((?:\.\w+)*)")


def evaluate(template: Any, variables: Mapping[str, Any], states: Mapping[str, Any]) -> Any:
    """Return a field with all its expressions replaced by their values.

    variables: Values that earlier states assigned.
    states: The variable ``$states``: ``input``, ``result`` and ``context``.
    """
    if isinstance(template, Mapping):
        return {name: evaluate(each, variables, states) for name, each in template.items()}
    if isinstance(template, list):
        return [evaluate(each, variables, states) for each in template]
    if not (isinstance(template, str) and template.startswith("{%")):
        return template
    code = template[2:-2].strip()
    known = {**variables, "states": states}
    path = _PATH.fullmatch(code)
    value = _follow(known, path) if path else by_interpreter(code, known)
    if value is None:
        raise KeyError(f"{code} has no value; known are {sorted(variables)}")
    return value


def by_interpreter(code: str, known: Mapping[str, Any]) -> Any:
    expression = _parsed(code)
    frame = expression.create_frame()
    for name, value in known.items():
        frame.bind(name, value)
    return expression.evaluate(None, frame)


@cache
def _parsed(code: str) -> Any:
    return Jsonata(code)


def _follow(known: Mapping[str, Any], path: re.Match[str]) -> Any:
    value: Any = known
    for name in (path[1], *path[2].split(".")[1:]):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
