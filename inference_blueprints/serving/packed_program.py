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

import inference_contracts
from inference_runtime import runtime_directory
from inference_runtime.imported_files import needed_files

#: Packages that may be in the archive, and where they are: those of `runtime/`, and the contracts.
_SOURCES: Final = {
    **dict.fromkeys(
        ("discovery_roles", "request_filter", "task_start", "task_targets", "weights"), runtime_directory()
    ),
    inference_contracts.__name__: Path(inference_contracts.__file__).parents[1],
}
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

    module: The module. A package is run by its ``__main__``.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for relative, file in sorted(needed_files([module], _SOURCES).items()):
            # Without a date, which differs between checkouts.
            archive.writestr(zipfile.ZipInfo(str(relative)), _code_of(file))
    return base64.b85encode(zlib.compress(content.getvalue(), 9)).decode("ascii")


def _code_of(file: Path) -> str:
    """Return a module's code without comments, docstrings and types of parameters."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            # Also the texts below the fields of classes.
            node.body = [each for each in node.body if not _is_text(each)] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(tree)


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
