"""Record the flags of an engine under Dynamo, as the pinned releases define them.

Writes ``catalog/inference_catalog/data/engines/<engine>.json``. Run it again after a change of the pinned
ai-dynamo:

    .venv/bin/python scripts/record_engine_flags.py vllm [--digest sha256:…]

Engines are named as in the blueprint: vllm, sglang and tensorrtLlm. Dynamo's own flags come from its
installed
wheel. The flags of vLLM and SGLang come from the wheel of the release that Dynamo requires. The script reads
its modules from the archive over HTTP (about 2 MB of hundreds) and never imports them, because that needs
torch. The index has no wheel of TensorRT-LLM, so its flags come from Dynamo's parser.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.metadata
import json
import re
import sys
import types
import zipfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dynamo.common.configuration.groups.router_args import register_worker_router_help
from dynamo.common.configuration.groups.runtime_args import DynamoRuntimeArgGroup
from engine_definitions import (
    SGLANG_ARGUMENTS,
    VLLM_ARGUMENTS,
    VLLM_SERVER_ARGUMENTS,
    Flags,
    sglang_flags,
    vllm_flags,
    vllm_server_flags,
)
from remote_wheel import open_remote_wheel

TARGETS = Path(__file__).resolve().parents[1] / "catalog/inference_catalog/data/engines"
REGISTRY = "nvcr.io/nvidia/ai-dynamo"

#: The engine's own keys. Dynamo's worker accepts ``--trtllm.<key>`` (``dynamo/trtllm/dynamic_flags.py``).
TENSORRT_LLM_KEYS = (
    "cache_transceiver_config.backend",
    "cache_transceiver_config.max_tokens_in_buffer",
    "disable_overlap_scheduler",
    "enable_chunked_prefill",
    "kv_cache_config.dtype",
    "kv_cache_config.enable_block_reuse",
    "kv_cache_config.free_gpu_memory_fraction",
    "kv_cache_config.tokens_per_block",
    "revision",
)
TENSORRT_LLM_SOURCE = (
    "tensorrt_llm/llmapi/llm_args.py of github.com/NVIDIA/TensorRT-LLM, read at commit "
    "0004396720054fd8e205cbf616f21f0b57c6b412 of its main, not at the release's tag"
)


@dataclass(frozen=True)
class EngineSource:
    """The definitions of an engine's flags."""

    image: str
    """Repository of its image in Dynamo's registry."""
    package: str
    """Package of the engine, which Dynamo requires."""
    module: str
    """Module of Dynamo with the flags of its worker."""
    group: str
    """The class that adds them."""
    own_flags: Callable[[str], Flags]
    """Returns the flags of the engine itself."""
    definition: str
    """Place of their definition."""
    server_flags: Callable[[str], Flags] | None = None
    """Returns the flags that the engine's own server has besides. None if no stack runs that server."""


def of_wheel(read: Callable[[zipfile.ZipFile], Flags]) -> Callable[[str], Flags]:
    """Return a reader of the flags in the wheel of a requirement."""

    def flags(requirement: str) -> Flags:
        with open_remote_wheel(requirement) as wheel:
            return read(wheel)

    return flags


def tensorrt_llm_flags(_: str) -> Flags:
    """Return the keys of TensorRT-LLM that the plan or a user may set."""
    flag = {"takes_value": True, "negatable": False, "owner": "tensorrtLlm"}
    return {f"--trtllm.{key}": flag for key in TENSORRT_LLM_KEYS}


SOURCES = {
    "vllm": EngineSource(
        "vllm-runtime",
        "vllm",
        "dynamo.vllm",
        "DynamoVllmArgGroup",
        of_wheel(vllm_flags),
        f"{VLLM_ARGUMENTS} and {VLLM_SERVER_ARGUMENTS}",
        of_wheel(vllm_server_flags),
    ),
    "sglang": EngineSource(
        "sglang-runtime",
        "sglang",
        "dynamo.sglang",
        "DynamoSGLangArgGroup",
        of_wheel(sglang_flags),
        SGLANG_ARGUMENTS,
    ),
    "tensorrtLlm": EngineSource(
        "tensorrtllm-runtime",
        "tensorrt-llm",
        "dynamo.trtllm",
        "DynamoTrtllmArgGroup",
        tensorrt_llm_flags,
        TENSORRT_LLM_SOURCE,
    ),
}


def dynamo_flags(source: EngineSource) -> Flags:
    """Return the flags that Dynamo's worker adds to the engine's, from its own parser."""
    stand_in_for_tensorrt_llm()
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    DynamoRuntimeArgGroup().add_arguments(parser)
    getattr(importlib.import_module(f"{source.module}.backend_args"), source.group)().add_arguments(parser)
    register_worker_router_help(parser)
    flags: Flags = {}
    for group in parser._action_groups:  # the router's flags are listed in their group only
        for action in group._group_actions:
            names = [name for name in action.option_strings if not name.startswith("--no-")]
            negatable = len(names) < len(action.option_strings)
            for name in names or action.option_strings:
                flags[name] = {"takes_value": action.nargs != 0, "negatable": negatable, "owner": "dynamo"}
                if action.choices:
                    flags[name]["choices"] = sorted(map(str, action.choices))
    return flags


def stand_in_for_tensorrt_llm() -> None:
    """Replace TensorRT-LLM, so that Dynamo's parser can be built. It needs only defaults."""
    defaults = types.SimpleNamespace(model_fields=defaultdict(lambda: types.SimpleNamespace(default=None)))
    module = types.ModuleType("tensorrt_llm.llmapi")
    module.BuildConfig = defaults  # type: ignore[attr-defined]
    sys.modules.setdefault("tensorrt_llm", types.ModuleType("tensorrt_llm"))
    sys.modules.setdefault("tensorrt_llm.llmapi", module)


def required_engine_version(package: str) -> str:
    """Return the release of an engine that the installed ai-dynamo requires."""
    for requirement in importlib.metadata.requires("ai-dynamo") or []:
        match = re.match(rf"{package}(?:\[[^]]*\])?==([^;\s]+)", requirement)
        if match:
            return match.group(1)
    sys.exit(f"the installed ai-dynamo requires no release of {package}; read its metadata")


def table_text(key: str, flags: Mapping[str, object]) -> str:
    """Return a table as JSON with a line per flag or reason."""
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(flags[name])}" for name in sorted(flags))
    return f'  "{key}": {{\n{lines}\n  }}'


def owned_tables(target: Path) -> list[str]:
    """Return the tables that no program records: what the plan owns, and what nobody reads."""
    known = json.loads(target.read_text("utf-8")) if target.exists() else {}
    keys = ("owned_arguments", "server_owned_arguments", "ignored_arguments")
    return [table_text(key, known[key]) for key in keys if key in known]


def main() -> None:
    """Record the flags and write the engine's file."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("engine", choices=SOURCES, help="engine, named as in the blueprint")
    options.add_argument("--digest", help="manifest digest of the image, sha256:…, if it is known")
    given = options.parse_args()
    source = SOURCES[given.engine]
    dynamo_version = importlib.metadata.version("ai-dynamo")
    engine_version = required_engine_version(source.package)
    requirement = f"{source.package}=={engine_version}"
    flags = source.own_flags(requirement) | dynamo_flags(source)
    server_flags = source.server_flags(requirement) if source.server_flags else {}
    document = {
        "image": f"{REGISTRY}/{source.image}",
        "version": dynamo_version,
        "digest": given.digest,
        "engine_version": engine_version,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": f"ai-dynamo {dynamo_version} (argument parsers of {source.module}) and {source.package} "
        f"{engine_version} ({source.definition})",
    }
    head = json.dumps(document, indent=2).removesuffix("\n}")
    tables = {"flags": flags, "server_flags": server_flags}
    parts = [head, *(table_text(key, table) for key, table in tables.items() if table)]
    target = TARGETS / f"{given.engine}.json"
    parts += owned_tables(target)
    target.write_text(",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(f"{target}: {len(flags)} flags of {source.module} {dynamo_version} with {engine_version}")


if __name__ == "__main__":
    main()
