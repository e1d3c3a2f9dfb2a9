"""Sections of which only a part fits the types: rules still run on that part, and stop where it ends."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn

from inference_blueprints.spec.document import Document
from inference_blueprints.spec.structure import Key, is_choice, keys
from inference_blueprints.spec.types import Section
from inference_blueprints.spec.wording import Path


class Undecidable(Exception):  # noqa: N818 - it is no mistake, a rule ends here
    """A rule needs a value that does not fit the types, and was reported for that."""


def _end(*_arguments: object) -> NoReturn:
    raise Undecidable


class _Unfit:
    """Stands for a value that does not fit; whoever looks at it cannot go on."""

    __slots__ = ()
    __getattr__ = __getitem__ = __call__ = __iter__ = __len__ = __bool__ = __contains__ = _end
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __str__ = __repr__ = __format__ = _end
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _end
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __int__ = __float__ = __index__ = _end


_UNFIT = _Unfit()


class Faults:
    """The places of a document where something does not fit the types.

    Parameters
    ----------
    paths
        The places.
    """

    def __init__(self, paths: Collection[Path]) -> None:
        self._paths = frozenset(paths)
        self._above = {path[:length] for path in paths for length in range(len(path))}

    def at(self, path: Path) -> bool:
        """Return whether a fault lies at a path, or at something that holds it."""
        return any(path[:length] in self._paths for length in range(len(path) + 1))

    def touch(self, path: Path) -> bool:
        """Return whether a fault lies at a path, below it, or at something that holds it."""
        return self.at(path) or path in self._above


def partial_section(kind: type[Section], document: Document, path: Path, faults: Faults) -> Any:
    """Return what of a section fits, as far as there is a mapping that names what it is to be.

    Parameters
    ----------
    kind
        Type of the section.
    document
        The whole document.
    path
        Where the section is.
    faults
        Where something does not fit.

    Returns
    -------
    Section
        One whose values raise `Undecidable` where they do not fit; such a value itself if nothing fits.
    """
    value = document.value(path, default={})
    if not faults.touch(path):
        return kind.model_validate(value, by_alias=True, by_name=False)
    known = keys(kind)
    if not isinstance(value, dict) or (
        is_choice(kind) and (len(value) != 1 or not known.keys() >= set(value))
    ):
        return _UNFIT
    values = {key.attribute: _value(key, document, (*path, name), faults) for name, key in known.items()}
    return kind.model_construct(**values)


def _value(key: Key, document: Document, path: Path, faults: Faults) -> Any:
    """Return what a key holds; sections and lists are taken apart as far as something in them is wrong."""
    value = document.value(path)
    if value is None and not faults.touch(path):
        return _absent(key)
    if isinstance(value, list) and key.is_list and not faults.at(path):
        return [_item(key, document, (*path, index), faults) for index in range(len(value))]
    if key.is_list:
        return _UNFIT
    return _item(key, document, path, faults)


def _item(key: Key, document: Document, path: Path, faults: Faults) -> Any:
    if key.child:
        return partial_section(key.child, document, path, faults)
    return _UNFIT if faults.touch(path) else document.value(path)


def _absent(key: Key) -> Any:
    """Return what an optional key means when it is not there."""
    default = key.field.get_default(call_default_factory=True)
    return key.child.model_validate(default) if key.child and isinstance(default, dict) else default
