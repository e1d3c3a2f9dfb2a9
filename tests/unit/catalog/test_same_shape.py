"""Models of the same shape. Bug: a model gets the speed of another one with other layers or weights."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog.figures import same_shape

NAME = "meta-llama/Llama-3.1-70B-Instruct"
#: Fields with words about a model, which change nothing about its speed.
WORDS = {"name", "answer_format", "gated", "licence", "source"}


def test_a_model_comes_first_and_others_follow() -> None:
    assert same_shape(NAME, catalog.models())[:2] == (NAME, "meta-llama/Llama-3.3-70B-Instruct")


def test_a_model_without_an_entry_is_alone() -> None:
    assert same_shape("someone/Finetuned", catalog.models()) == ("someone/Finetuned",)


@pytest.mark.parametrize("field", [field.name for field in fields(catalog.model(NAME))])
def test_every_other_field_makes_a_shape_of_its_own(field: str) -> None:
    entry = catalog.model(NAME)
    changed: dict[str, Any] = {field: "other"}
    models = {NAME: entry, "other": replace(entry, **changed)}
    assert ("other" in same_shape(NAME, models)) is (field in WORDS)
