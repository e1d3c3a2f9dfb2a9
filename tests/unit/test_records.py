"""Data classes of `inference_contracts.records` behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any

import pytest

from inference_contracts import records


class _Checked:
    name: str
    sizes: tuple[int, ...] = ()
    labels: dict[str, str] = field(default_factory=dict, compare=False)
    hidden: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("no name")


class _Named(_Checked):
    zone: str

    def __repr__(self) -> str:
        return self.zone


def _classes(dataclass: Callable[..., Any]) -> tuple[type[Any], type[Any]]:
    """Return a data class, and one that extends it, whose arguments are given by name."""
    base = dataclass(frozen=True, slots=True)(type("Base", (), dict(vars(_Checked))))
    body = {name: value for name, value in vars(_Named).items() if name != "__weakref__"}
    return base, dataclass(frozen=True, slots=True, kw_only=True)(type("Extended", (base,), body))


#: Each uses a class and the one that extends it. What it returns, or raises, is that of the standard library.
USES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda base, _: repr(base("a", (1, 2), hidden="x")),
    lambda base, _: (base("a", (1,)) == base("a", (1,)), base("a") == base("b"), base("a") == "a"),
    lambda base, _: base("a", labels={"k": "v"}) == base("a"),
    lambda base, _: len({base("a"), base("a", labels={"k": "v"}), base("b")}),
    lambda base, _: base("a").labels is base("a").labels,
    lambda base, _: asdict(replace(base("a"), sizes=(3,))),
    lambda base, _: [(each.name, each.type, each.kw_only) for each in fields(base)],
    lambda base, _: asdict(copy.deepcopy(base("a", (1,), {"k": "v"}))),
    lambda base, _: base.__match_args__,
    lambda base, _: base(),
    lambda base, _: base("a", other=1),
    lambda base, _: base(""),
    lambda base, _: setattr(base("a"), "name", "b"),
    lambda base, _: delattr(base("a"), "name"),
    lambda _, extended: repr(extended("a", zone="z")),
    lambda _, extended: asdict(extended("a", (1,), zone="z")),
    lambda _, extended: extended("a", (), {}, "", "z"),
    lambda base, extended: extended("a", zone="z") == base("a"),
    lambda _, extended: extended("a", zone="y") == extended("a", zone="z"),
)


def _outcome(use: Callable[[Any, Any], Any], dataclass: Callable[..., Any]) -> object:
    try:
        return use(*_classes(dataclass))
    except (TypeError, ValueError, FrozenInstanceError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("use", USES)
def test_as_in_the_standard_library(use: Callable[[Any, Any], Any]) -> None:
    """Red if a method of the shared ones differs from what `dataclasses` generates."""
    assert _outcome(use, records.dataclass) == _outcome(use, dataclasses.dataclass)


@records.dataclass(frozen=True, slots=True)
class Pickled:
    """As a worker of a search gets it from another process."""

    name: str


@records.dataclass(frozen=True, slots=True)
class Empty:
    """Without fields."""


def test_without_fields() -> None:
    assert len({Empty(), Empty()}) == 1
    assert repr(Empty()) == "Empty()"


def test_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled("a"))) == Pickled("a")  # noqa: S301 - bytes of this test
    assert not hasattr(Pickled("a"), "__dict__")


def test_nothing_is_compiled_before_the_first_object(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_init = records._init

    def counted(kind: type[Any], declared: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
        compiled.append(kind.__name__)
        return compile_init(kind, declared)

    monkeypatch.setattr(records, "_init", counted)
    base, extended = _classes(records.dataclass)
    assert compiled == []
    assert [base("a"), base("b"), extended("c", zone="z")]
    assert compiled == ["Base", "Extended"]


def test_what_it_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="those of dataclasses"):
        records.dataclass(type("Open", (), {}), frozen=False, slots=True)
    counted = type("Counted", (), {"__annotations__": {"n": "int"}, "n": field(default=0, init=False)})
    with pytest.raises(TypeError, match=r"Counted\.n: fields with init=False"):
        records.dataclass(counted, frozen=True, slots=True)
