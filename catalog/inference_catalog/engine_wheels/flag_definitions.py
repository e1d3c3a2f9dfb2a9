"""Reads an engine's flags from its sources without running them, because they import torch."""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterator, Sequence

from inference_contracts.errors import UserError

Flags = dict[str, dict[str, object]]

VLLM_ARGUMENTS = "vllm/engine/arg_utils.py"
#: Where releases define the flags of the server: since 0.33, those before, and those before 0.20.
VLLM_SERVER_ARGUMENTS = (
    "vllm/entrypoints/common/cli_args.py",
    "vllm/entrypoints/launchers/cli_args.py",
    "vllm/entrypoints/openai/cli_args.py",
)
#: Modules with the names of parsers, and the table in each, by the flag that takes them.
_VLLM_PARSERS = {
    "--reasoning-parser": ("vllm/reasoning/__init__.py", "_REASONING_PARSERS_TO_REGISTER"),
    "--tool-call-parser": ("vllm/tool_parsers/__init__.py", "_TOOL_PARSERS_TO_REGISTER"),
}
_SGLANG_PARSERS = {
    "--reasoning-parser": ("sglang/srt/parser/reasoning_parser.py", "DetectorMap"),
    "--tool-call-parser": ("sglang/srt/function_call/function_call_parser.py", "ToolCallParserEnum"),
}
SGLANG_ARGUMENTS = "sglang/srt/server_args.py"
OMNI_ARGUMENTS = "vllm_omni/entrypoints/cli/serve.py"
SGLANG_FIELDS = "sglang/srt/arg_groups/fields/"
#: Actions of flags without a value.
_SWITCHES = ("store_true", "StoreTrue", "store_false")


def vllm_flags(wheel: zipfile.ZipFile) -> Flags:
    """Return the flags that ``AsyncEngineArgs.add_cli_args`` defines."""
    modules = [name for name in wheel.namelist() if name.startswith("vllm/config/") and name.endswith(".py")]
    annotations = _configuration_fields([ast.parse(wheel.read(name)) for name in modules])
    flags = _added_flags(ast.parse(wheel.read(VLLM_ARGUMENTS)), annotations, "vllm")
    return _with_parser_names(flags, wheel, _VLLM_PARSERS)


def vllm_server_flags(wheel: zipfile.ZipFile) -> Flags:
    """Return the flags that ``vllm serve`` has besides those of the engine (``make_arg_parser``)."""
    tree = ast.parse(wheel.read(vllm_server_module(wheel)))
    flags = _added_flags(tree, {}, "vllm")
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ClassDef) and statement.name in ("BaseFrontendArgs", "FrontendArgs"):
            for field, types in _configuration_fields([ast.Module([statement], [])]).items():
                switch = all(map(_is_boolean, types))
                name = "--" + field.replace("_", "-")
                flags[name] = {"takes_value": not switch, "negatable": switch, "owner": "vllm"}
    return _with_parser_names(flags, wheel, _VLLM_PARSERS)


def vllm_server_module(wheel: zipfile.ZipFile) -> str:
    """Return the module of a release with the flags of ``vllm serve``."""
    return first_module(wheel, VLLM_SERVER_ARGUMENTS)


def first_module(wheel: zipfile.ZipFile, modules: Sequence[str]) -> str:
    """Return the first of several modules that a wheel has; raises UserError if it has none."""
    found = next((each for each in modules if each in wheel.NameToInfo), None)
    if found is None:
        raise UserError(
            f"the wheel has none of {', '.join(modules)}, where the releases known here define what they "
            "accept; use a release of this library that knows this one"
        )
    return found


def omni_flags(wheel: zipfile.ZipFile) -> Flags:
    """Return the flags that vLLM-Omni adds to those of ``vllm serve``."""
    tree = ast.parse(wheel.read(OMNI_ARGUMENTS))
    flags = _added_flags(tree, {}, "vllmOmni")
    for name, choices in _literal_choices(tree):
        flags[name]["choices"] = choices
    return flags


def _literal_choices(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Yield each flag whose ``add_argument`` call lists its values."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            names = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
            for keyword in node.keywords:
                if node.func.attr == "add_argument" and keyword.arg == "choices":
                    yield from ((name, list(ast.literal_eval(keyword.value))) for name in names)


def sglang_flags(wheel: zipfile.ZipFile) -> Flags:
    """Return the flags of ``ServerArgs.add_cli_args``: one per annotated field, and some others."""
    flags: Flags = {}
    for module in wheel.namelist():
        if module.startswith(SGLANG_FIELDS) and module.endswith(".py"):
            for field, annotation in _annotated_fields(ast.parse(wheel.read(module))):
                flags |= _field_flags(field, annotation)
    flags |= _added_flags(ast.parse(wheel.read(SGLANG_ARGUMENTS)), {}, "sglang")
    return _with_parser_names(flags, wheel, _SGLANG_PARSERS)


def _with_parser_names(flags: Flags, wheel: zipfile.ZipFile, tables: dict[str, tuple[str, str]]) -> Flags:
    """Return the flags with the parsers' names as choices of those that take one."""
    return flags | {
        flag: {**flags[flag], "choices": _table_keys(ast.parse(wheel.read(module)), table)}
        for flag, (module, table) in tables.items()
        if flag in flags
    }


def _table_keys(tree: ast.Module, table: str) -> list[str]:
    """Return the keys of the dictionary that is assigned to a name."""
    for statement in ast.walk(tree):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys)) if name == table:
                return sorted(ast.literal_eval(key) for key in keys if key)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Dict(keys=keys)) if name == table:
                return sorted(ast.literal_eval(key) for key in keys if key)
    raise UserError(f"the wheel has no dictionary {table}, which lists the engine's parsers")


def _configuration_fields(trees: list[ast.Module]) -> dict[str, list[str]]:
    """Return the annotations under which each field name occurs in vLLM's configuration classes."""
    found: dict[str, list[str]] = {}
    for tree in trees:
        for statement in ast.walk(tree):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found.setdefault(statement.target.id, []).append(ast.unparse(statement.annotation))
    return found


def _added_flags(tree: ast.Module, annotations: dict[str, list[str]], owner: str) -> Flags:
    """Return the flags of each ``add_argument`` call."""
    flags: Flags = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr != "add_argument":
            continue
        switch, negatable = _is_switch(node, annotations)
        for argument in node.args:
            name = argument.value if isinstance(argument, ast.Constant) else None
            if isinstance(name, str) and name.startswith("-"):
                flags[name] = {"takes_value": not switch, "negatable": negatable, "owner": owner}
    return flags


def _is_switch(call: ast.Call, annotations: dict[str, list[str]]) -> tuple[bool, bool]:
    """Return whether an ``add_argument`` call has no value, and whether it has a ``--no-`` form.

    vLLM derives most options from a configuration field (``**model_kwargs["dtype"]``): a field annotated as
    boolean becomes ``argparse.BooleanOptionalAction``.
    """
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    action = keywords.get("action", "")
    field = re.search(r"\[['\"](\w+)['\"]\]", keywords.get(None, ""))
    types = annotations.get(field.group(1), []) if field else []
    negatable = "BooleanOptionalAction" in action or (any(map(_is_boolean, types)) and not action)
    return negatable or any(each in action for each in _SWITCHES), negatable


def _is_boolean(annotation: str) -> bool:
    return set(re.split(r"\W+", annotation)) <= {"bool", "None", "Optional", ""}


def _annotated_fields(tree: ast.Module) -> Iterator[tuple[str, list[ast.expr]]]:
    """Yield each ``name: A[type, metadata]`` of SGLang's argument classes."""
    for statement in ast.walk(tree):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        match statement.annotation:
            case ast.Subscript(value=ast.Name(id="A"), slice=ast.Tuple(elts=parts)):
                yield statement.target.id, parts


def _field_flags(field: str, annotation: list[ast.expr]) -> Flags:
    """Return a field's flag and its other names, by the rules of ``arg_groups/arg_utils.py``."""
    metadata = next((each for each in annotation[1:] if isinstance(each, ast.Call)), None)
    keywords = {each.arg: each.value for each in metadata.keywords} if metadata else {}
    if "no_cli" in keywords:
        return {}
    action = ast.unparse(keywords["action"]) if "action" in keywords else ""
    negatable = "BooleanOptionalAction" in action
    switch = negatable or (not action and _is_boolean(ast.unparse(annotation[0])))
    default = "--" + field.replace("_", "-")
    name = ast.literal_eval(keywords["cli_name"]) if "cli_name" in keywords else default
    aliases = ast.literal_eval(keywords["aliases"]) if "aliases" in keywords else []
    return {
        each: {"takes_value": not switch, "negatable": negatable, "owner": "sglang"}
        for each in (name, *aliases)
    }
