"""Which files of this project's packages a program imports, so that it ships with no others."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path


def imported_modules(file: Path, packages: Collection[str]) -> list[str]:
    """Return the modules of some packages that a file imports with ``from … import …``.

    `from package import name` may name a module or not, so both forms are returned.
    """
    return [
        name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in packages
        for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))
    ]


def needed_files(modules: Iterable[str], sources: Mapping[str, Path]) -> dict[Path, Path]:
    """Return the files of modules and of all that they import, by their paths below their source.

    modules: Names. A package is its ``__init__`` and, if it has one, its ``__main__``. Other names are left
        out.
    sources: For each package that counts, the folder from which it is imported.
    """
    waiting, found = list(modules), dict[Path, Path]()
    while waiting:
        name = waiting.pop()
        source = sources[name.split(".")[0]]
        for file in _module_files(source, name):
            if file.relative_to(source) not in found:
                found[file.relative_to(source)] = file
                waiting += imported_modules(file, sources)
    return found


def _module_files(source: Path, module: str) -> list[Path]:
    """Return the file of a module after those of its packages."""
    place = source.joinpath(*module.split("."))
    packages = [each / "__init__.py" for each in reversed(place.parents) if each.is_relative_to(source)]
    if place.is_dir():
        packages += [place / "__init__.py", place / "__main__.py"]
    return [file for file in (*packages, place.with_suffix(".py")) if file.is_file()]
