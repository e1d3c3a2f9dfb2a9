"""All rules: those of the modules in `sections`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from inference_blueprints.spec import sections
from inference_blueprints.spec.invalid_values import decidable
from inference_blueprints.spec.rule import DECLARED, Rule
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, in the order of the sections' names."""
    for module in walk_packages(sections.__path__, f"{sections.__name__}."):
        import_module(module.name)
    return tuple(sorted(DECLARED, key=lambda each: each.__module__))


def rule_findings(blueprint: Blueprint) -> list[Finding]:
    """Return the findings of all rules on a blueprint, which may have invalid values."""
    return findings_of(all_rules(), blueprint)


def findings_of(rules: Iterable[Rule], blueprint: Blueprint) -> list[Finding]:
    """Return the findings of some rules on a blueprint, which may have invalid values."""
    return [finding for rule in rules for finding in decidable(_on_blueprint(rule), blueprint)]


def _on_blueprint(rule: Rule) -> Callable[[Blueprint], Iterator[Finding]]:
    return lambda blueprint: rule(blueprint.spec)
