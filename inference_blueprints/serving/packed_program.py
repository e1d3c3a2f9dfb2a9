"""Our programs as text of ASCII, which any Python runs without a file of ours in its image.

The text is a zip archive, which Python imports without unpacking it (PEP 273), from memory
(memfd_create(2)), so the file system of the container may be read-only. It holds only the modules that a
program imports, without docstrings and comments, and is compressed as one piece: a task definition has at
most 64 KiB (Amazon ECS Developer Guide, "Service quotas"). It is written in base85, which is a sixteenth
shorter than base64, and whose letters JSON, YAML and CloudFormation take as they are.
"""

from __future__ import annotations

import ast
import base64
import io
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Final

from inference_blueprints.resources import root, runtime_directory

#: Packages that may be in the archive: those of `runtime/`, and the contracts.
_PACKAGES: Final = (
    *("discovery_roles", "request_filter", "task_start", "task_targets", "weights"),
    "inference_blueprints",
)
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: Python text that imports the archive and runs the module that the first word names. What is between the two
#: parts is an expression for the packed text.
LOADER: Final = (
    "import base64,os,runpy,sys,zlib;"
    'f=os.memfd_create("task");'
    "os.write(f,zlib.decompress(base64.b85decode({text})));"
    'sys.path.insert(0,f"/proc/self/fd/{{f}}");'
    "del sys.argv[0];"
    'runpy.run_module(sys.argv[0],run_name="__main__",alter_sys=True)'
)


@cache
def packed_program(module: str) -> str:
    """Return a module of `runtime/` with all that it imports: the same text for the same files.

    Parameters
    ----------
    module
        The module. A package is run by its ``__main__``.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(_needed(module)):
            # Without a date, which differs between checkouts.
            entry = zipfile.ZipInfo(str(file.relative_to(_source(file))))
            archive.writestr(entry, _code_of(file))
    return base64.b85encode(zlib.compress(content.getvalue(), 9)).decode("ascii")


def _needed(module: str) -> set[Path]:
    """Return the files of a module and of all modules that it imports, with their packages."""
    waiting, found = [module], set[Path]()
    while waiting:
        name = waiting.pop()
        for file in _files(name):
            if file not in found:
                found.add(file)
                waiting += _imported(file)
    return found


def _files(module: str) -> list[Path]:
    """Return the file of a module after that of its package. A package is run by its ``__main__``."""
    source = root() if module.startswith("inference_blueprints") else runtime_directory()
    place = source.joinpath(*module.split("."))
    packages = [each / "__init__.py" for each in reversed(place.parents) if each.is_relative_to(source)]
    if place.is_dir():
        packages += [place / "__init__.py", place / "__main__.py"]
    return [file for file in (*packages, place.with_suffix(".py")) if file.is_file()]


def _source(file: Path) -> Path:
    """Return the folder from which a file's module is imported."""
    return runtime_directory() if file.is_relative_to(runtime_directory()) else root()


def _imported(file: Path) -> list[str]:
    return [
        name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in _PACKAGES
        # `from package import module` names a module, and `from module import name` does not.
        for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))
    ]


def _code_of(file: Path) -> str:
    """Return a module's code without comments, docstrings and types of parameters."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(tree)
