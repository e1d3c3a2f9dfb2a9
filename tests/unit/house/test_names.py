"""A module name and a public class name stand for one thing, in all production code."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from inference_blueprints.resources import root

PRODUCTION = ("app.py", "benchmarks", "constructs", "inference_blueprints", "runtime", "scripts", "stacks")

#: Module names that may repeat, with the reason.
MODULES: Mapping[str, str] = {
    "__init__": "Python's name of a package",
    "__main__": "Python's name of a program",
    "capacity_stack": "the stack of the same name in an account; the package names the target",
    "cluster_stack": "the stack of the same name in an account; the package names the target",
    "model_stack": "the stack of the same name in an account; the package names the target",
    "operations_stack": "the stack of the same name in an account; the package names the target",
    "handler": "entry point of a Lambda function; the package names the function",
    "handlers": "entry points of Lambda functions; the package names their subject",
    "tasks": "what a model does in the section; what Amazon ECS runs in its target",
    "settings": "environment variables of one program; the package names the program",
}
#: Class names that may repeat, with the reason.
CLASSES: Mapping[str, str] = {
    "Engine": "the catalogue's facts about what a blueprint's section of the same name chooses",
    "Model": "the catalogue's facts about what a blueprint's section of the same name chooses",
}


def production_files() -> Iterator[Path]:
    for place in PRODUCTION:
        path = root() / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            yield file.relative_to(root())


def repeated(places: Mapping[str, set[str]]) -> dict[str, set[str]]:
    return {name: files for name, files in places.items() if len(files) > 1}


def modules() -> dict[str, set[str]]:
    places: dict[str, set[str]] = defaultdict(set)
    for file in production_files():
        # Rules on a section stand in a file of the name that the section's types have.
        is_rule = file.is_relative_to("inference_blueprints/spec/rules")
        mirrored = Path("inference_blueprints/spec/types") / file.name
        if not (is_rule and (root() / mirrored).is_file()):
            places[file.stem].add(str(file))
    return repeated(places)


def classes() -> dict[str, set[str]]:
    places: dict[str, set[str]] = defaultdict(set)
    for file in production_files():
        for node in ast.walk(ast.parse((root() / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(str(file))
    return repeated(places)


def test_a_module_name_repeats_for_a_written_reason_only() -> None:
    assert {name: files for name, files in modules().items() if name not in MODULES} == {}


def test_a_public_class_name_repeats_for_a_written_reason_only() -> None:
    assert {name: files for name, files in classes().items() if name not in CLASSES} == {}


def test_every_reason_is_needed() -> None:
    assert MODULES.keys() - modules().keys() == set()
    assert CLASSES.keys() - classes().keys() == set()
