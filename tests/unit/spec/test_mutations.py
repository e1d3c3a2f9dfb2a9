"""Whatever happens to a right file, it loads or earns readable problems, and never a traceback."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from inference_blueprints.loading import LoadedBlueprint, load_blueprint, parse_blueprint
from inference_blueprints.spec import composer, validation
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.structure import json_schema
from inference_contracts.errors import BlueprintError, Problem

BASE = Path(__file__).parent / "base.yaml"
TEXTS = [path.read_text(encoding="utf-8") for path in (BASE, *shipped().values())]
SCHEMA = Draft202012Validator(json_schema())

#: What people and programs get wrong in YAML.
TOKENS = [
    *("\t", "\n", "\n\n", "  ", ": ", "- ", "#", "---\n", "...\n", "%YAML 1.1\n", "? ", "|\n", ">-\n", ","),
    *(
        "[",
        "]",
        "{",
        "}",
        "'",
        '"',
        "&a ",
        "*a",
        "<<: ",
        "!!python/object:os.system ",
        "!t ",
        "\\x",
        "\r",
        "é",
        "\0",
    ),
    *("on", "~", "1.30", "010", "1:30", "2026-01-01", ".inf", "1e999", "0x1f", "9" * 40, "null", "="),
]
#: Values without whole-numbered fractions: JSON Schema takes 2.0 for an integer, the types do not.
SCALARS = st.one_of(
    st.text(max_size=8),
    st.integers(-3, 10**17),
    st.booleans(),
    st.floats(0.01, 0.99),
    st.sampled_from(
        ["us-east-1", "l40s", "Qwen/Qwen3-8B", "10.0.0.0/16", "g6e.48xlarge", "1.36", "s3://bucket/x"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(
    ["name", "max", "spot", "s3", "existing", "args", "cidr", "disk", "catalog", "max-model-len"]
)

#: How many examples: few for every commit, many in continuous integration.
each_number = pytest.mark.parametrize("number", [50, pytest.param(1000, marks=pytest.mark.thorough)])


def bounded(number: int) -> settings:
    return settings(derandomize=True, database=None, deadline=None, max_examples=number)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value below one."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, child in pairs for place in ((*path, key), *places(child, (*path, key)))]


@st.composite
def mutated_documents(draw: st.DrawFn) -> Any:
    """Delete, duplicate, move, add and replace values of a right document."""
    document = copy.deepcopy(yaml.safe_load(draw(st.sampled_from(TEXTS))))
    for _ in range(draw(st.integers(1, 3))):
        paths = places(document)
        if not paths:
            break
        *above, last = draw(st.sampled_from(paths))
        holder = document
        for part in above:
            holder = holder[part]
        match draw(st.sampled_from(["delete", "replace", "duplicate", "add", "move"])):
            case "delete":
                del holder[last]
            case "replace":
                holder[last] = draw(VALUES)
            case "duplicate" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[last]))
            case "add" if isinstance(holder, dict):
                holder[draw(KEYS)] = draw(VALUES)
            case _:
                holder[last] = copy.deepcopy(draw(st.sampled_from([document, holder, holder[last]])))
    return document


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    """Cut, repeat and insert into the text of a right document."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 12)))
        insertion = draw(st.sampled_from([*TOKENS, text[start:stop] * 2, ""]))
        text = text[:start] + insertion + text[stop:]
    return text


def problems_of(load: Callable[[], LoadedBlueprint]) -> list[Problem]:
    """Load a blueprint; return its problems, which are none or all errors."""
    try:
        warnings = load().warnings
    except BlueprintError as error:
        problems = error.problems
        severity = "error"
    else:
        problems = list(warnings)
        severity = "warning"
    assert {problem.severity for problem in problems} <= {severity}
    assert problems or severity == "warning"
    return problems


def check(text: str) -> None:
    """Load a text; its problems, if any, have to be readable and within it."""
    lines = len(text.splitlines())
    for problem in problems_of(lambda: parse_blueprint(text, "own.yaml")):
        assert problem.file == "own.yaml"
        assert 0 <= problem.line <= lines + 1
        assert problem.column >= min(problem.line, 1)
        assert 0 < len(problem.message) < 1000
        assert str(problem).isprintable()


@each_number
def test_mutated_values(number: int) -> None:
    @bounded(number)
    @given(mutated_documents())
    def load(document: Any) -> None:
        check(yaml.safe_dump(document, allow_unicode=True))

    load()


@each_number
def test_mutated_text(number: int) -> None:
    @bounded(number)
    @given(mutated_texts())
    def load(text: str) -> None:
        check(text)

    load()


@each_number
def test_flipped_bytes(number: int, tmp_path: Path) -> None:
    file = tmp_path / "flipped.yaml"

    @bounded(number)
    @given(
        st.sampled_from(TEXTS),
        st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4),
    )
    def load(text: str, flips: list[tuple[int, int]]) -> None:
        content = bytearray(text.encode())
        for place, byte in flips:
            content[place % len(content)] = byte
        file.write_bytes(content)
        for problem in problems_of(lambda: load_blueprint(str(file))):
            assert problem.message
            assert str(problem).removeprefix(str(file)).isprintable()

    load()


@each_number
def test_the_schema_says_what_the_types_say(number: int) -> None:
    @bounded(number)
    @given(mutated_documents())
    def compare(document: Any) -> None:
        try:
            parsed = composer.parse(yaml.safe_dump(document, allow_unicode=True), "own.yaml")
        except BlueprintError:
            return  # too deep or too large to be taken apart, which is not the schema's subject
        if parsed.problems or parsed.root.value != document:
            return  # nor are YAML's own refusals
        assert (validation.validate(parsed).is_complete) == SCHEMA.is_valid(document)

    compare()
