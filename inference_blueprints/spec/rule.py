"""A rule of a blueprint: a function with the decorator `rule`, beside the keys that it checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from inference_blueprints.spec.wording import Path, duplicates, quote
from inference_contracts.errors import Finding

if TYPE_CHECKING:
    from inference_blueprints.spec.blueprint import Spec

#: Yields errors and warnings about a blueprint; `decidable` handles values that do not fit the types.
Rule = Callable[["Spec"], Iterator[Finding]]

#: Every rule of the modules that are imported. `rule_table` imports all of them.
DECLARED: list[Rule] = []


def rule(function: Rule) -> Rule:
    """Make a function a rule. Its docstring says what it checks, for the reference."""
    DECLARED.append(function)
    return function


def duplicate_names(kind: str, names: Mapping[Path, str]) -> Iterator[Finding]:
    """Yield a finding for each name that occurred before."""
    paths = list(names)
    for index, name in duplicates(names.values()):
        yield Finding(paths[index], f"got {quote(name)}, another {kind} has this name; rename one of them")
