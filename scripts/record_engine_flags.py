"""Record the flags of the vLLM engine under Dynamo, as the pinned releases define them.

Writes ``inference_blueprints/catalog/data/engines/vllm.json``; run it again after moving ai-dynamo's pin:

    .venv/bin/python scripts/record_engine_flags.py [--digest sha256:…]

Dynamo's own flags come from its installed wheel. vLLM's come from the wheel of the release that Dynamo
requires: its modules are read over HTTP out of the archive (about 2 MB of 340 MB) and never imported, since
that needs torch.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import importlib.metadata
import json
import re
import sys
import zipfile
from pathlib import Path

from dynamo.common.configuration.groups.router_args import register_worker_router_help
from dynamo.common.configuration.groups.runtime_args import DynamoRuntimeArgGroup
from dynamo.vllm.backend_args import DynamoVllmArgGroup
from remote_wheel import open_remote_wheel

TARGET = Path(__file__).resolve().parents[1] / "inference_blueprints/catalog/data/engines/vllm.json"
IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime"
ENGINE_ARGUMENTS = "vllm/engine/arg_utils.py"

Flags = dict[str, dict[str, object]]


def dynamo_flags() -> Flags:
    """Return the flags that ``python -m dynamo.vllm`` adds to the engine's, by asking its own parser."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    DynamoRuntimeArgGroup().add_arguments(parser)
    DynamoVllmArgGroup().add_arguments(parser)
    register_worker_router_help(parser)
    flags: Flags = {}
    for group in parser._action_groups:  # the router's flags are listed in their group only
        for action in group._group_actions:
            names = [name for name in action.option_strings if not name.startswith("--no-")]
            negatable = len(names) < len(action.option_strings)
            for name in names or action.option_strings:
                flags[name] = {"takes_value": action.nargs != 0, "negatable": negatable, "owner": "dynamo"}
    return flags


def configuration_fields(trees: list[ast.Module]) -> dict[str, list[str]]:
    """Return the annotations under which each field name occurs in vLLM's configuration classes."""
    found: dict[str, list[str]] = {}
    for tree in trees:
        for statement in ast.walk(tree):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found.setdefault(statement.target.id, []).append(ast.unparse(statement.annotation))
    return found


def is_switch(call: ast.Call, annotations: dict[str, list[str]]) -> tuple[bool, bool]:
    """Tell whether an ``add_argument`` call takes no value, and whether it has a ``--no-`` form.

    vLLM derives most options from a configuration field (``**model_kwargs["dtype"]``): a field annotated as
    boolean becomes ``argparse.BooleanOptionalAction``.
    """
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    action = keywords.get("action", "")
    field = re.search(r"\[['\"](\w+)['\"]\]", keywords.get(None, ""))
    types = annotations.get(field.group(1), []) if field else []
    boolean = any(set(re.split(r"\W+", kind)) <= {"bool", "None", "Optional", ""} for kind in types)
    negatable = "BooleanOptionalAction" in action or (boolean and not action)
    return negatable or "store_true" in action, negatable


def engine_flags(wheel: zipfile.ZipFile) -> Flags:
    """Return the flags that ``AsyncEngineArgs.add_cli_args`` defines."""
    modules = [name for name in wheel.namelist() if name.startswith("vllm/config/") and name.endswith(".py")]
    annotations = configuration_fields([ast.parse(wheel.read(name)) for name in modules])
    flags: Flags = {}
    for node in ast.walk(ast.parse(wheel.read(ENGINE_ARGUMENTS))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr != "add_argument":
            continue
        switch, negatable = is_switch(node, annotations)
        for argument in node.args:
            name = argument.value if isinstance(argument, ast.Constant) else None
            if isinstance(name, str) and name.startswith("-"):
                flags[name] = {"takes_value": not switch, "negatable": negatable, "owner": "vllm"}
    return flags


def required_engine_version() -> str:
    """Return the vLLM release that the installed ai-dynamo requires."""
    for requirement in importlib.metadata.requires("ai-dynamo") or []:
        match = re.match(r"vllm(?:\[[^]]*\])?==([^;\s]+)", requirement)
        if match:
            return match.group(1)
    sys.exit("the installed ai-dynamo names no vLLM release: read its metadata and adapt this script")


def main() -> None:
    """Record the flags and write the engine's file."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--digest", help="manifest digest of the image, sha256:…, when it has been resolved")
    digest = options.parse_args().digest
    dynamo_version, engine_version = importlib.metadata.version("ai-dynamo"), required_engine_version()
    with open_remote_wheel(f"vllm=={engine_version}") as wheel:
        flags = engine_flags(wheel) | dynamo_flags()
    document = {
        "image": IMAGE,
        "version": dynamo_version,
        "digest": digest,
        "engine_version": engine_version,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": f"ai-dynamo {dynamo_version} (argument parsers of dynamo.vllm) and vllm {engine_version} "
        f"({ENGINE_ARGUMENTS}), from their wheels",
    }
    head = json.dumps(document, indent=2).removesuffix("\n}")
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(flags[name])}" for name in sorted(flags))
    TARGET.write_text(f'{head},\n  "flags": {{\n{lines}\n  }}\n}}\n', encoding="utf-8")
    print(f"{TARGET}: {len(flags)} flags of dynamo.vllm {dynamo_version} with vLLM {engine_version}")


if __name__ == "__main__":
    main()
