"""Which tests are near a change, by the imports of the repository.

A file is near another one if a chain of at most `STEPS` imports leads to it. The name of a module or the path
of a folder as text counts as an import too: programs are started by name, and code is copied by folder. The
name of a program of ``runtime``, or of a function in it, counts as an import of its whole folder.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

#: Folders that are on the path of Python, beside the root of the checkout.
SOURCE_ROOTS = ("", "catalog", "constructs", "contracts", "local", "runtime", "scripts")
PACKAGES = (
    "app.py",
    "benchmarks",
    "catalog",
    "constructs",
    "contracts",
    "inference_blueprints",
    "local",
    "runtime",
    "scripts",
    "stacks",
    "tests",
)
STEPS = 2
#: Says where the folders without Python are, such as the charts: a function `<folder>_directory` for each.
RESOURCES = "inference_blueprints/resources.py"
#: Pages: the first tier tests them.
PAGES = ("docs/", "README.md", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md")


def python_path(root: Path) -> str:
    """Return the value of PYTHONPATH with which everything is imported from a checkout."""
    return os.pathsep.join(str(root / folder) for folder in SOURCE_ROOTS)


def python_files(root: Path) -> list[str]:
    """Return the Python files of a checkout, relative to its root."""
    found = []
    for name in PACKAGES:
        place = root / name
        found += [place] if place.is_file() else sorted(place.rglob("*.py"))
    return [each.relative_to(root).as_posix() for each in found]


def imports(root: Path) -> dict[str, set[str]]:
    """Return the files that each Python file imports, names or, as a test, has fixtures from."""
    files = python_files(root)
    modules, folders = _places(files)
    return {file: _imported(root, file, modules, folders) - {file} for file in files}


def near(graph: Mapping[str, set[str]], begin: str, steps: int = STEPS) -> set[str]:
    """Return the files that at most some steps of imports lead to, including the first one."""
    found = edge = {begin}
    for _ in range(steps):
        edge = {imported for file in edge for imported in graph.get(file, ())} - found
        found = found | edge
    return found


def reachable(root: Path, begin: str) -> set[str]:
    """Return the Python files that a file imports, directly or over others, including itself.

    Names as text count as imports only in the folder of the first file: its programs are started by name, and
    what they contain is imported.
    """
    modules, folders = _places(python_files(root))
    own = f"{Path(begin).parent.as_posix()}/"
    found = edge = {begin}
    while edge:
        imported: set[str] = set()
        for file in edge:
            imported |= _imported(root, file, modules, folders, texts=file.startswith(own))
        edge = imported - found
        found = found | edge
    return found


def files_of_change(changed: Iterable[str], graph: Mapping[str, set[str]], root: Path) -> set[str]:
    """Return the Python files that a change concerns.

    Data in a package concerns the Python files of the nearest folder above it that has some. Other data, such
    as charts, concerns the files that call the function for its folder, or all that use `RESOURCES` if there
    is none. Pages concern nothing.
    """
    folders: dict[str, set[str]] = {}
    for file in graph:
        folders.setdefault(Path(file).parent.as_posix(), set()).add(file)
    concerned = set()
    for name in changed:
        if name.endswith(".py"):
            concerned.add(name)
        elif not name.startswith(PAGES):
            above = (parent.as_posix() for parent in Path(name).parents)
            beside = next((folders[each] for each in above if each in folders and each != "."), None)
            concerned |= beside or _readers(Path(name).parts[0], graph, root) or {RESOURCES}
    return concerned


def _readers(folder: str, graph: Mapping[str, set[str]], root: Path) -> set[str]:
    """Return the files that ask where a folder of the checkout is."""
    word = f"{folder}_directory("
    users = (file for file, imported in graph.items() if RESOURCES in imported)
    return {file for file in users if word in (root / file).read_text(encoding="utf-8")}


def _places(files: Iterable[str]) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return the file of each module name, and the files below each folder."""
    folders: dict[str, set[str]] = {}
    for file in files:
        for parent in Path(file).parents:
            folders.setdefault(parent.as_posix(), set()).add(file)
    return dict(_modules(files)), folders


def _modules(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each module name with its file. A file has a name per source root that it is below."""
    for file in files:
        path = Path(file).with_suffix("")
        for source in SOURCE_ROOTS:
            if source and not path.is_relative_to(source):
                continue
            parts = path.relative_to(source).parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def _imported(
    root: Path,
    file: str,
    modules: Mapping[str, str],
    folders: Mapping[str, set[str]],
    *,
    texts: bool = True,
) -> set[str]:
    """Return what a file imports, names in a text (if texts count) or, as a test, has fixtures from."""
    imported, constants = _names(root / file)
    found = {modules[name] for name in imported if name in modules}
    for text in constants if texts else ():
        found |= _named(text, modules, folders)
    if file.startswith("tests/"):
        for parent in Path(file).parents:
            conftest = (parent / "conftest.py").as_posix()
            if conftest in folders.get(parent.as_posix(), ()):
                found.add(conftest)
    return found


@cache
def _names(file: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of modules that a file imports or may import, and its texts."""
    imported, texts = set(), set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
    return frozenset(imported), frozenset(texts)


def _named(text: str, modules: Mapping[str, str], folders: Mapping[str, set[str]]) -> set[str]:
    """Return the files of the module, function or folder that a text names."""
    if "/" in text:
        return folders.get(text.strip("/"), set())
    program = modules.get(text, modules.get(text.rpartition(".")[0])) if "." in text else None
    if program is None:
        return set()
    return folders[Path(program).parent.as_posix()] if program.startswith("runtime/") else {program}
