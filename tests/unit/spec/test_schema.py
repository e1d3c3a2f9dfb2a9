"""The JSON Schema: in step with the types, and useful to an editor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from inference_blueprints.resources import blueprints_directory, schema_path
from inference_blueprints.spec import formats
from inference_blueprints.spec.section import Region
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.structure import is_choice, json_schema, keys, walk

HERE = Path(__file__).parent
BASE = (HERE / "base.yaml").read_text(encoding="utf-8")
SCHEMA = json_schema()


def cases(pattern: str) -> Iterator[Any]:
    """Yield the documents of broken cases that are YAML at least."""
    for file in sorted(HERE.glob(pattern)):
        for case in yaml.safe_load(file.read_text(encoding="utf-8")):
            text = BASE
            for edit in case["edits"]:
                text = text.replace(edit["replace"], edit["by"], 1)
            yield pytest.param(yaml.safe_load(text), id=f"{file.stem}: {case['case']}")


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping of the schema."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(child)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", shipped())
def test_shipped_blueprints_fit_and_name_it(name: str) -> None:
    text = shipped()[name].read_text(encoding="utf-8")
    Draft202012Validator(SCHEMA).validate(yaml.safe_load(text))
    relative = schema_path().relative_to(blueprints_directory())
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={relative}"


@pytest.mark.parametrize("topic", ["unknown_keys", "kinds", "forms_and_limits"])
def test_what_the_types_refuse_the_schema_refuses(topic: str) -> None:
    for case in cases(f"broken/{topic}.yaml"):
        assert not Draft202012Validator(SCHEMA).is_valid(case.values[0]), case.id


def test_what_only_rules_refuse_the_schema_takes() -> None:
    refused = [each.values[0] for each in cases("broken/rules_*.yaml")]
    assert len(refused) > 100
    assert [each for each in refused if not Draft202012Validator(SCHEMA).is_valid(each)] == []


def test_every_section_is_closed_and_described() -> None:
    for _, section, _ in walk():
        definition = SCHEMA["$defs"].get(section.__name__, SCHEMA)
        assert definition["additionalProperties"] is False
        assert definition["title"] == section.__name__
        assert definition["description"]
        assert ("maxProperties" in definition) == is_choice(section)
        for key in keys(section).values():
            described = definition["properties"][key.name]
            assert described["title"] == key.name
            assert described["description"] == key.description


def test_every_form_is_put_into_words() -> None:
    patterns = {part["pattern"] for part in parts(SCHEMA) if "pattern" in part}
    assert patterns == set(formats.DESCRIPTIONS)
    assert all("patternErrorMessage" in part for part in parts(SCHEMA) if "pattern" in part)


def test_nothing_is_null() -> None:
    assert not [
        part for part in parts(SCHEMA) if part.get("type") == "null" or part.get("default", 0) is None
    ]


def test_a_form_is_of_the_whole_text_and_in_the_schema() -> None:
    """A pattern that a line break at the end passes, or that the schema lacks, turns this red."""
    adapter = TypeAdapter(Region)
    assert adapter.validate_python("us-west-2") == "us-west-2"
    for text in ("us-west-2\n", "xus-west-2", "us west"):
        with pytest.raises(ValidationError) as refused:
            adapter.validate_python(text)
        (detail,) = refused.value.errors()
        assert (detail["type"], detail["ctx"]) == ("string_pattern_mismatch", {"pattern": formats.REGION})
    assert adapter.json_schema() == {"type": "string", "pattern": formats.REGION}
