"""The public API of the constructs: the names that `__all__` of each package lists."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import pytest

from inference_blueprints.resources import root

PACKAGE = root() / "constructs/inference_constructs"
#: The package itself and its capabilities.
PUBLIC = sorted(
    ".".join(file.parent.relative_to(PACKAGE.parent).parts) for file in PACKAGE.rglob("__init__.py")
)


@cache
def imported(file: Path) -> tuple[tuple[str, str], ...]:
    """Return module and name of each `from … import …` of constructs in a file."""
    return tuple(
        (str(node.module), alias.name)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGE.name)
        for alias in node.names
    )


@pytest.mark.parametrize("package", PUBLIC)
def test_all_lists_what_type_checkers_see(package: str) -> None:
    """It turns red when a name is public for type checkers and not for programs, or the reverse."""
    module = importlib.import_module(package)
    names = [
        name for place, name in imported(Path(str(module.__file__))) if place != f"{PACKAGE.name}.lazy_names"
    ]
    assert sorted(names) == sorted(module.__all__)
    files = {file.stem for file in Path(str(module.__file__)).parent.iterdir()}
    hidden = files & set(module.__all__)
    assert not hidden, "after an import of the module, the package's attribute is the module and not the name"


def test_a_public_name_is_imported_when_it_is_used() -> None:
    """It turns red when a public name cannot be imported, or when a wrong one has no clear error."""
    module = importlib.import_module(PACKAGE.name)
    assert module.Statement is importlib.import_module(f"{PACKAGE.name}.policy_statements").Statement
    with pytest.raises(AttributeError, match="no attribute 'Unknown'"):
        module.Unknown  # noqa: B018


def test_our_stacks_use_public_names_alone() -> None:
    """It turns red when a stack imports a module of the constructs, which others may not rely on."""
    places = [root() / "app.py", *sorted((root() / "stacks").rglob("*.py"))]
    places += sorted((root() / "constructs/examples").glob("*.py"))
    private = [
        f"{file.relative_to(root())} imports {place}.{name}"
        for file in places
        for place, name in imported(file)
        if place not in PUBLIC or name not in importlib.import_module(place).__all__
    ]
    assert private == []
