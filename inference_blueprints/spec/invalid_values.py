"""Blueprints with invalid values: a placeholder stands for each, and checks work around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from inference_blueprints.spec.wording import Path
from inference_contracts.errors import Finding

if TYPE_CHECKING:
    from inference_blueprints.spec.blueprint import Blueprint

_Item = TypeVar("_Item")

#: Attributes and list indexes from the blueprint, as Python spells them.
Place = tuple[str | int, ...]


class Undecidable(Exception):  # noqa: N818 - not a mistake: the check cannot be decided
    """A check used an invalid value; the error in the file is reported already."""

    def __init__(self, place: Place) -> None:
        self.place = place


class InvalidValue:
    """Stands for a value that does not fit the types; every use of it raises `Undecidable`.

    place: Where the value is in the blueprint.
    """

    __slots__ = ("_place",)

    def __init__(self, place: Place) -> None:
        self._place = place

    def _stop(self, *_arguments: object) -> NoReturn:
        raise Undecidable(self._place)

    __getattr__ = __getitem__ = __call__ = __iter__ = __len__ = __bool__ = __contains__ = _stop
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __str__ = __repr__ = __format__ = _stop
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _stop
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __int__ = __float__ = __index__ = _stop


def usable(items: Iterable[_Item]) -> Iterator[tuple[int, _Item]]:
    """Yield index and item of a blueprint's list, without the invalid items.

    Iterate over the list itself where a check needs every item, such as all names that are allowed.
    """
    return ((index, item) for index, item in enumerate(items) if not isinstance(item, InvalidValue))


def decidable(check: Callable[[Blueprint], Iterable[Finding]], blueprint: Blueprint) -> Iterator[Finding]:
    """Yield what a check finds in a blueprint that may have invalid values.

    A check that uses an invalid value within an item of a list runs again without that item: an invalid value
    replaces the whole item, and `usable` skips it. So a broken item does not hide findings about its
    neighbours. An invalid value outside all lists ends the check. What a later run finds at a place that an
    earlier run reported is dropped.
    """
    reported: set[Path] = set()
    remaining: Blueprint | None = blueprint
    while remaining is not None:
        found, invalid_value = _run(check, remaining)
        yield from (finding for finding in found if finding.path not in reported)
        reported.update(finding.path for finding in found)
        remaining = None if invalid_value is None else _without_item(remaining, invalid_value)


def _run(
    check: Callable[[Blueprint], Iterable[Finding]], blueprint: Blueprint
) -> tuple[list[Finding], Place | None]:
    """Return what a check finds, and the place of the invalid value that ended it; None if none did."""
    found: list[Finding] = []
    try:
        for finding in check(blueprint):
            found.append(finding)
    except Undecidable as undecidable:
        return found, undecidable.place
    return found, None


def _without_item(blueprint: Blueprint, place: Place) -> Blueprint | None:
    """Return the blueprint without the innermost list item around a place; None where no list holds it."""
    for end in range(len(place) - 1, 0, -1):
        if isinstance(place[end - 1], int):
            item = place[:end]
            whole: Blueprint = _with_invalid_value(blueprint, item, InvalidValue(item))
            return whole
    return None


def _with_invalid_value(value: Any, place: Place, invalid_value: InvalidValue) -> Any:
    """Return a copy of a section or list with an invalid value at a place below it."""
    if not place:
        return invalid_value
    first, *rest = place
    if isinstance(first, int):
        return [
            _with_invalid_value(item, tuple(rest), invalid_value) if i == first else item
            for i, item in enumerate(value)
        ]
    return value.model_copy(
        update={first: _with_invalid_value(getattr(value, first), tuple(rest), invalid_value)}
    )
