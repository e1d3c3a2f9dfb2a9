"""Public names of a package that are imported when they are first used.

An app that uses one construct then imports the services of this construct alone. Each service of AWS that
`aws_cdk` imports takes up to half a second.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path


def lazy_names(package: str, file: str) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    The package imports its public names below ``if TYPE_CHECKING:``, where type checkers find them.

    file: Its ``__init__.py``.
    """
    modules = {
        alias.name: node.module
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}.")
        for alias in node.names
    }

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
