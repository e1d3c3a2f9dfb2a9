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
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import inference_contracts
from inference_runtime import runtime_directory
from inference_runtime.imported_files import needed_files

#: Packages that may be in the archive, and where they are: those of `runtime/`, and the contracts.
_SOURCES: Final = {
    **dict.fromkeys(
        ("certificate_files", "discovery_roles", "request_filter", "task_start", "task_targets", "weights"),
        runtime_directory(),
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
    return _text_of(tree)


class _Placeholders(ast.NodeTransformer):
    """Takes the f-strings out of a tree and leaves names, which an unparsed text has once each."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Name:
        name = f"f_string_{len(self.texts)}_of_the_module_"
        self.texts[name] = _f_string(node)
        return ast.Name(name)


def _text_of(tree: ast.AST) -> str:
    """Return the code of a tree, which Python 3.10 reads, and which each later version writes alike.

    From version 3.12 on, `ast.unparse` writes quotes within f-strings that earlier versions do not read
    (PEP 701), and images run earlier ones.
    """
    placeholders = _Placeholders()
    text = ast.unparse(placeholders.visit(tree))
    # The outer f-strings were found first, and hold no names of others.
    for name, written in placeholders.texts.items():
        text = text.replace(name, written)
    return text


def _f_string(node: ast.JoinedStr) -> str:
    """Return an f-string with the quotes that Python 3.11 chooses."""
    kinds, parts = ["'", '"', '"""', "'''"], [*_parts(node)]
    for part in parts:
        kinds = sorted((kind for kind in kinds if kind not in part), key=lambda kind: part.endswith(kind[0]))
    if not kinds:
        raise ValueError(f"an f-string with all kinds of quotes: {''.join(parts)}")
    return f"f{kinds[0]}{''.join(parts)}{kinds[0]}"


def _parts(node: ast.JoinedStr) -> Iterator[str]:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = _text_of(part.value)
            if isinstance(part.value, ast.IfExp | ast.Lambda):
                value = f"({value})"
            space = " " if value.startswith("{") else ""
            conversion = "" if part.conversion == -1 else f"!{chr(part.conversion)}"
            form = (
                ":" + "".join(_parts(part.format_spec)) if isinstance(part.format_spec, ast.JoinedStr) else ""
            )
            yield f"{{{space}{value}{conversion}{form}}}"
        elif isinstance(part, ast.Constant):
            text = str(part.value).replace("{", "{{").replace("}", "}}")
            yield "".join(
                each.encode("unicode_escape").decode() if each == "\\" or not each.isprintable() else each
                for each in text
            )


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
