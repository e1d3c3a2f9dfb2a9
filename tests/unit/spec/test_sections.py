"""What makes `blueprints validate` fast: a section is described to pydantic when a file has it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from inference_blueprints.spec.section import Section
from inference_blueprints.spec.structure import walk


def _sections() -> tuple[type[Section], type[Section]]:
    """Return new sections: one, and one that may have the first under the key `innerPart`."""
    inner: Any = type("Inner", (Section,), {"__annotations__": {"max_tokens": int}})
    outer: Any = type(
        "Outer", (Section,), {"__annotations__": {"inner_part": inner | None}, "inner_part": None}
    )
    return inner, outer


def test_a_section_is_described_when_a_file_has_it() -> None:
    inner, outer = _sections()
    outer.model_validate({})
    assert not inner.__pydantic_complete__
    read = outer.model_validate({"innerPart": {"maxTokens": 5}})
    assert inner.__pydantic_complete__
    assert read.model_dump(by_alias=True) == {"innerPart": {"maxTokens": 5}}


def test_an_error_inside_keeps_its_place() -> None:
    _, outer = _sections()
    with pytest.raises(ValidationError) as error:
        outer.model_validate({"innerPart": {"maxTokens": "5", "other": 1}, "more": 1})
    assert [(each["loc"], each["type"]) for each in error.value.errors()] == [
        (("innerPart", "maxTokens"), "int_type"),
        (("innerPart", "other"), "extra_forbidden"),
        (("more",), "extra_forbidden"),
    ]


def test_no_annotation_is_compiled() -> None:
    """Only a section that contains itself names itself in a text."""
    for path, section, _ in walk():
        texts = {name: text for name, text in section.__annotations__.items() if isinstance(text, str)}
        assert all(section.__name__ in text for text in texts.values()), (path, texts)
