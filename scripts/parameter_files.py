"""Count the files that name a parameter of the blueprint, or an engine: how far one subject is spread.

The rule: a Python file outside of tests and examples counts if its code has the parameter's Python name
as a whole word in an identifier, an imported module or a string, or if the file itself has that name.
Docstrings and comments do not count. If the word has other meanings, the file has to name the subject
too (`CONTEXTS`). An engine has three spellings: its key, a Python name and a class; its file of flags
counts too. What every engine of today needs is what a new one would: the one with the fewest files shows
it best. Figures before and after a change are comparable only if this script, as it is after the change,
counts both checkouts.

    .venv/bin/python scripts/parameter_files.py                  figures of this checkout
    .venv/bin/python scripts/parameter_files.py gpuHealth sglang  the files, with the lines that name it
    .venv/bin/python scripts/parameter_files.py --checkout PATH   figures of another checkout
"""

from __future__ import annotations

import argparse
import ast
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

#: Python names of parameters. A list of topics is one too, and `topics` names it.
PARAMETERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "instanceTypes": "instance_types",
        "deadlineHours": "deadline_hours",
        "gpuHealth": "gpu_health",
        "streaming.topic": "topics?",
    }
)
#: What a file must name too if the word has other meanings: alarms and caches of engines have topics as well.
CONTEXTS: Final[Mapping[str, str]] = MappingProxyType({"streaming.topic": "kafka|flink|msk|streaming"})
#: The file of each engine's flags, by the names that the folder had.
_FLAGS: Final = "*/data/engines/*.json"
#: Folders whose Python files do not count, beside hidden ones, and this file. Examples are what users write.
_LEFT_OUT: Final = frozenset({"tests", "examples", "build", "node_modules", "cdk.out", Path(__file__).name})


def engines(checkout: Path) -> dict[str, str]:
    """Return the spellings of each engine of the catalogue as a pattern, by its key."""
    keys = sorted(path.stem for path in checkout.rglob(_FLAGS) if not _is_left_out(checkout, path))
    return {key: f"{key}|{_snake(key)}|{key[0].upper()}{key[1:]}" for key in keys}


def naming_files(checkout: Path, pattern: str, context: str = "") -> dict[str, list[int]]:
    """Return the files that name a subject, with the lines that do so.

    checkout: Root of a checkout.
    pattern: Spellings of the name, a regular expression. It has to match whole words.
    context: What the file must name too, a regular expression for parts of words; empty if nothing.
    """
    word, beside = re.compile(rf"\b(?:{pattern})\b"), re.compile(context, re.IGNORECASE)
    found = {}
    for path in sorted(checkout.rglob("*.py")):
        if _is_left_out(checkout, path):
            continue
        code = [*_code(path)]
        lines = {line for line, text in code if word.search(text)}
        if not any(beside.search(text) for _, text in code) and context:
            continue
        if lines or word.fullmatch(path.stem):
            found[path.relative_to(checkout).as_posix()] = sorted(lines)
    for path in sorted(checkout.rglob(_FLAGS)):
        if word.fullmatch(path.stem) and not _is_left_out(checkout, path):
            found[path.relative_to(checkout).as_posix()] = []
    return found


def main() -> None:
    """Print figures, or the files of the subjects that the command names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parameters or engines, of which all files are listed")
    parser.add_argument("--checkout", type=Path, default=Path(__file__).parent.parent)
    arguments = parser.parse_args()
    checkout: Path = arguments.checkout.resolve()
    subjects = {**PARAMETERS, **engines(checkout)}
    unknown = sorted(set(arguments.names) - subjects.keys())
    if unknown:
        parser.error(f"got {', '.join(unknown)}; allowed are {', '.join(subjects)}")
    for name in arguments.names or subjects:
        files = naming_files(checkout, subjects[name], CONTEXTS.get(name, ""))
        print(f"{name}: {len(files)} files, {sum(map(len, files.values()))} lines")
        if arguments.names:
            for file, lines in files.items():
                print(f"  {file}: {', '.join(map(str, lines)) or 'its name'}")


def _is_left_out(checkout: Path, path: Path) -> bool:
    parts = path.relative_to(checkout).parts
    return any(part in _LEFT_OUT or part.startswith(".") for part in parts)


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower()


def _code(path: Path) -> Iterator[tuple[int, str]]:
    """Yield names, imported modules and strings of a module with their lines, but no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = _prose(tree)
    for node in ast.walk(tree):
        if node in prose:
            continue
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=text) | ast.arg(arg=text) | ast.Constant(value=str(text)):
                yield line, text
            case ast.Attribute(attr=text):
                yield node.end_lineno or line, text
            case ast.keyword(arg=str(text)):
                yield line, text
            case ast.FunctionDef(name=text) | ast.AsyncFunctionDef(name=text) | ast.ClassDef(name=text):
                yield line, text
            case ast.Import(names=names):
                yield line, " ".join(alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names):
                yield line, " ".join([module or "", *(alias.name for alias in names)])


def _prose(tree: ast.Module) -> set[ast.AST]:
    """Return the texts that stand alone: docstrings of modules, classes, functions and fields."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it
    main()
