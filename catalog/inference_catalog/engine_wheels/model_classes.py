"""Reads the model classes that a release of an engine registers, without running it."""

from __future__ import annotations

import ast
import zipfile
from collections.abc import Iterable

from inference_contracts.errors import UserError

VLLM_REGISTRY = "vllm/model_executor/models/registry.py"
#: The table that vLLM looks classes up in, which joins the others of the module.
_VLLM_TABLE = "_VLLM_MODELS"
SGLANG_MODELS = "sglang/srt/models/"
#: What a module of `SGLANG_MODELS` registers (``import_model_classes`` in ``registry.py`` there).
_SGLANG_NAME = "EntryClass"


def vllm_model_classes(wheel: zipfile.ZipFile) -> tuple[str, ...]:
    """Return the classes in vLLM's registry, sorted."""
    tables: dict[str, ast.Dict] = {}
    for statement in ast.parse(wheel.read(VLLM_REGISTRY)).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as table):
                tables[name] = table
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Dict() as table):
                tables[name] = table
    if _VLLM_TABLE not in tables:
        raise UserError(f"{VLLM_REGISTRY} of the wheel has no table {_VLLM_TABLE}")
    return tuple(sorted(set(_keys(_VLLM_TABLE, tables))))


def _keys(name: str, tables: dict[str, ast.Dict]) -> Iterable[str]:
    """Yield the keys of a table and of those that it joins with ``**``."""
    for key, value in zip(tables[name].keys, tables[name].values, strict=True):
        match key, value:
            case ast.Constant(value=str(text)), _:
                yield text
            case None, ast.Name(id=other) if other in tables:
                yield from _keys(other, tables)
            case None, ast.DictComp(generators=[ast.comprehension(iter=source)]) if _names(source, tables):
                pass  # some of another table, which is joined too
            case _:
                raise UserError(f"{VLLM_REGISTRY} of the wheel: {name} is not written as a plain table")


def _names(expression: ast.expr, tables: dict[str, ast.Dict]) -> bool:
    """Return whether an expression reads one of the tables."""
    return any(isinstance(each, ast.Name) and each.id in tables for each in ast.walk(expression))


def sglang_model_classes(wheel: zipfile.ZipFile) -> tuple[str, ...]:
    """Return the classes that the modules of SGLang's models register, sorted."""
    modules = [
        name
        for name in wheel.namelist()
        if name.startswith(SGLANG_MODELS)
        and name.endswith(".py")
        and name.count("/") == SGLANG_MODELS.count("/")
    ]
    found = {name for module in modules for name in _registered(ast.parse(wheel.read(module)))}
    if not found:
        raise UserError(f"no module below {SGLANG_MODELS} of the wheel has {_SGLANG_NAME}")
    return tuple(sorted(found))


def _registered(tree: ast.Module) -> Iterable[str]:
    """Yield the classes that a module registers: one, or a list."""
    for statement in ast.walk(tree):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == _SGLANG_NAME:
                listed = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
                yield from (each.id for each in listed if isinstance(each, ast.Name))
