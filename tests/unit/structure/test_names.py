"""The name of a public class stands for one thing in all production code."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from inference_blueprints.resources import root

PRODUCTION = (
    *(
        "app.py",
        "benchmarks",
        "catalog",
        "constructs",
        "contracts",
        "inference_blueprints",
        "local",
        "runtime",
    ),
    *("scripts", "stacks"),
)
#: Names that may repeat, with the reason.
REPEATED: Mapping[str, str] = {
    "Engine": "the catalogue's facts about what a blueprint's section of the same name chooses",
    "Model": "the catalogue's facts about what a blueprint's section of the same name chooses",
}


def production_files() -> Iterator[Path]:
    for place in PRODUCTION:
        path = root() / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def repeated_classes() -> dict[str, set[Path]]:
    places: dict[str, set[Path]] = defaultdict(set)
    for file in production_files():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(file.relative_to(root()))
    return {name: files for name, files in places.items() if len(files) > 1}


def test_the_name_of_a_public_class_repeats_for_a_written_reason_only() -> None:
    """Two classes of one name are mistaken for each other, in imports and in reviews."""
    repeated = repeated_classes()
    assert {name: files for name, files in repeated.items() if name not in REPEATED} == {}
    assert repeated.keys() >= REPEATED.keys(), "a reason is not needed any more"
