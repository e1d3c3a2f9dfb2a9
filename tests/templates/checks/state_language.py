"""State machines against the Amazon States Language, by programs that others keep.

``asl-validator`` has the language as JSON Schemas, JSONata's fields among them, and follows each transition
(https://github.com/ChristopheBougere/asl-validator, 4.0.0). It is stricter than the language in one thing:
where any JSON value may stand it refuses a bare number and an empty string. It reads expressions only where
its schemas have them; so each is given to JSONata's own parser (https://github.com/jsonata-js/jsonata).
Neither knows what a service's task takes; that is held against the functions by each machine's tests.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from inference_blueprints import tools
from tests.templates.support import text

_SCRIPT: Final = Path(__file__).with_suffix(".cjs")
_EXPRESSION: Final = re.compile(r"\{%(.*)%\}", re.DOTALL)
#: What a definition has of pseudo parameters, as a region has it.
_PSEUDO_PARAMETERS: Final = {"${AWS::Partition}": "aws", "${AWS::Region}": "us-west-2"}


def definition_of(machine: dict[str, Any]) -> dict[str, Any]:
    """The definition of a state machine of a template, as a region has it."""
    spelled = text(machine["DefinitionString"])
    for name, value in _PSEUDO_PARAMETERS.items():
        spelled = spelled.replace(name, value)
    found: dict[str, Any] = json.loads(spelled)
    return found


def expressions(value: Any) -> Iterator[str]:
    """Every JSONata expression of a definition, without its brackets."""
    match value:
        case dict():
            for each in value.values():
                yield from expressions(each)
        case list():
            for each in value:
                yield from expressions(each)
        case str() if found := _EXPRESSION.fullmatch(value):
            yield found[1]


def faults(definition: dict[str, Any]) -> list[str]:
    """What is wrong with a definition and its expressions."""
    [found] = faults_of_each([definition])
    return found


def faults_of_each(definitions: Iterable[dict[str, Any]]) -> list[list[str]]:
    """What is wrong with each definition. All are read by one process, which takes a while to start."""
    given = [{"definition": each, "expressions": list(expressions(each))} for each in definitions]
    result = subprocess.run(
        [tools.node(), _SCRIPT], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    found: list[list[str]] = json.loads(result.stdout)
    return found
