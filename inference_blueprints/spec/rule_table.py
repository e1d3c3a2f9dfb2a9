"""All rules: those of the modules in `sections`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from inference_blueprints.spec import sections
from inference_blueprints.spec.invalid_values import Undecidable, decidable
from inference_blueprints.spec.rule import DECLARED, Rule
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

#: Rules that say nothing about a blueprint without the section `frontDoor`, which few have.
_OF_FRONT_DOOR = f"{sections.__name__}.front_door."


@cache
def all_rules(*, with_front_door: bool = True) -> tuple[Rule, ...]:
    """Return every rule, in the order of the sections' names.

    with_front_door: Whether those of the front door are imported and among them.
    """
    for module in walk_packages(sections.__path__, f"{sections.__name__}."):
        if with_front_door or not module.name.startswith(_OF_FRONT_DOOR):
            import_module(module.name)
    wanted = (each for each in DECLARED if with_front_door or not each.__module__.startswith(_OF_FRONT_DOOR))
    return tuple(sorted(wanted, key=lambda each: each.__module__))


def rule_findings(blueprint: Blueprint) -> list[Finding]:
    """Return the findings of all rules on a blueprint, which may have invalid values."""
    return findings_of(all_rules(with_front_door=_may_have_front_door(blueprint)), blueprint)


def _may_have_front_door(blueprint: Blueprint) -> bool:
    """Return whether a blueprint has a front door; also if that cannot be decided."""
    try:
        return blueprint.spec.front_door is not None
    except Undecidable:
        return True


def findings_of(rules: Iterable[Rule], blueprint: Blueprint) -> list[Finding]:
    """Return the findings of some rules on a blueprint, which may have invalid values."""
    return [finding for rule in rules for finding in decidable(_on_blueprint(rule), blueprint)]


def _on_blueprint(rule: Rule) -> Callable[[Blueprint], Iterator[Finding]]:
    return lambda blueprint: rule(blueprint.spec)
