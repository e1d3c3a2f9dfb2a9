"""`dataclass` for classes that a short command defines, made without generated functions.

`blueprints validate` defines 150 data classes and uses half of them. With those of `dataclasses`, which
compiles six functions for each frozen one, it takes 45 ms of 315 ms and 2 MiB of 41 MiB more. Here `__init__`
is compiled when the first object is made, and all classes share the others.

`msgspec.Struct` compiles nothing. To make these classes takes 2 ms with it instead of 24 ms, but to import it
another 9 ms and 1.8 MiB. It cannot replace these classes: pydantic, which writes the schemas of our charts
from them (`scripts/write_chart_schemas.py`), does not take it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

#: Stands for an argument that was not given, where the field has a `default_factory`.
_MADE = object()

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        kind: type | None = None, /, *, frozen: bool, slots: bool, kw_only: bool = False
    ) -> type | Callable[[type], type]:
        """Make a class a data class, as ``dataclasses.dataclass`` does with the same arguments.

        Parameters
        ----------
        frozen, slots
            Always True.
        kw_only
            Whether all arguments are given by name.

        Raises
        ------
        TypeError
            If the class needs what this decorator does not have; ``dataclasses`` has it.
        """
        if not (frozen and slots):
            raise TypeError("data classes with frozen=False or slots=False are those of dataclasses")
        return _made(kind, kw_only=kw_only) if kind else lambda decorated: _made(decorated, kw_only=kw_only)


def _made(kind: Any, *, kw_only: bool) -> Any:
    """Return the data class of a class."""
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(kind)
    declared = fields(made)
    for each in declared:
        if not each.init:
            name = f"{made.__qualname__}.{each.name}"
            raise TypeError(f"{name}: fields with init=False are those of dataclasses")

    def first(self: Any, *arguments: Any, **named: Any) -> None:
        made.__init__ = _init(made, declared)
        made.__init__(self, *arguments, **named)

    made.__init__ = first
    compared = [field.name for field in declared if field.compare]
    made._compared = attrgetter(*compared) if compared else staticmethod(_nothing)
    for name, method in _METHODS.items():
        if made.__dict__.get(name) is None:
            setattr(made, name, method)
    return made


def _init(kind: type[Any], declared: tuple[Field[Any], ...]) -> Callable[..., None]:
    """Compile the function that sets every field, or its default."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_made": _MADE}
    positional: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for field in declared:
        name, default = field.name, f"_default_{field.name}"
        parameter = value = name
        if field.default is not MISSING:
            names[default] = field.default
            parameter = f"{name}={default}"
        elif field.default_factory is not MISSING:
            names[default] = field.default_factory
            parameter, value = f"{name}=_made", f"{default}() if {name} is _made else {name}"
        (named if field.kw_only else positional).append(parameter)
        body.append(f"_set(self, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ["self", *positional, *(["*", *named] if named else [])]
    exec(f"def __init__({', '.join(parameters)}): {'; '.join(body) or 'pass'}", names)  # noqa: S102 - names
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    return init


def _nothing(_record: object) -> tuple[()]:
    """Return what records without compared fields compare by."""
    return ()


def _equals(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash_of(self: Any) -> int:
    return hash(self._compared(self))


def _text(self: Any) -> str:
    values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({values})"


def _no_assignment(_self: object, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(_self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


#: What all data classes share, unless they define it.
_METHODS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "__eq__": _equals,
        "__hash__": _hash_of,
        "__repr__": _text,
        "__setattr__": _no_assignment,
        "__delattr__": _no_deletion,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
)
