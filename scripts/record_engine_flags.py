"""Record the flags of an engine under Dynamo, as the pinned releases define them.

Writes ``catalog/inference_catalog/data/engines/<engine>.json``. Run it again after a change of the pinned
ai-dynamo:

    .venv/bin/python scripts/record_engine_flags.py vllm [--digest sha256:…]

With ``--release 0.33.0`` it records a release of vLLM or SGLang that runs without Dynamo, as
``<engine>/<release>.json`` beside it, and keeps what the plan owns there.

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
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from dynamo.common.configuration.groups.router_args import register_worker_router_help
from dynamo.common.configuration.groups.runtime_args import DynamoRuntimeArgGroup

from inference_catalog.engine_wheels.flag_definitions import Flags
from inference_catalog.engine_wheels.release_file import ENGINE_WHEELS, release_file, table_text
from inference_catalog.engine_wheels.wheels import open_wheel

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


def tensorrt_llm_flags() -> Flags:
    """Return the keys of TensorRT-LLM that the plan or a user may set."""
    flag = {"takes_value": True, "negatable": False, "owner": "tensorrtLlm"}
    return {f"--trtllm.{key}": flag for key in TENSORRT_LLM_KEYS}


SOURCES = {
    "vllm": EngineSource("vllm-runtime", "vllm", "dynamo.vllm", "DynamoVllmArgGroup"),
    "sglang": EngineSource("sglang-runtime", "sglang", "dynamo.sglang", "DynamoSGLangArgGroup"),
    "tensorrtLlm": EngineSource(
        "tensorrtllm-runtime", "tensorrt-llm", "dynamo.trtllm", "DynamoTrtllmArgGroup"
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


def owned_tables(target: Path) -> list[str]:
    """Return the tables that no program records: what the plan owns, and what nobody reads."""
    known = json.loads(target.read_text("utf-8")) if target.exists() else {}
    keys = ("owned_arguments", "server_owned_arguments", "ignored_arguments")
    return [table_text(key, known[key]) for key in keys if key in known]


def own_flags(engine: str, requirement: str) -> tuple[Flags, Flags, str]:
    """Return the flags of an engine itself, those of its own server besides, and where they are defined."""
    if engine not in ENGINE_WHEELS:
        return tensorrt_llm_flags(), {}, TENSORRT_LLM_SOURCE
    read, archive = ENGINE_WHEELS[engine], open_wheel(requirement).archive
    return read.flags(archive), read.server_flags(archive), " and ".join(read.modules(archive))


def main() -> None:
    """Record the flags and write the engine's file."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("engine", choices=SOURCES, help="engine, named as in the blueprint")
    options.add_argument("--digest", help="manifest digest of the image, sha256:…, if it is known")
    options.add_argument("--release", help="record this release of the engine, which runs without Dynamo")
    given = options.parse_args()
    if given.release:
        record_release(given.engine, given.release, given.digest)
        return
    source = SOURCES[given.engine]
    dynamo_version = importlib.metadata.version("ai-dynamo")
    engine_version = required_engine_version(source.package)
    own, server_flags, definition = own_flags(given.engine, f"{source.package}=={engine_version}")
    workers = dynamo_flags(source)
    flags = own | workers
    # What both programs have is Dynamo's in its workers, and the engine's own in its server.
    server_flags |= {name: own[name] for name in own.keys() & workers.keys()}
    document = {
        "image": f"{REGISTRY}/{source.image}",
        "version": dynamo_version,
        "digest": given.digest,
        "engine_version": engine_version,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": f"ai-dynamo {dynamo_version} (argument parsers of {source.module}) and {source.package} "
        f"{engine_version} ({definition})",
    }
    head = json.dumps(document, indent=2).removesuffix("\n}")
    tables = {"flags": flags, "server_flags": server_flags}
    parts = [head, *(table_text(key, table) for key, table in tables.items() if table)]
    target = TARGETS / f"{given.engine}.json"
    parts += owned_tables(target)
    target.write_text(",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(f"{target}: {len(flags)} flags of {source.module} {dynamo_version} with {engine_version}")


def record_release(engine: str, release: str, digest: str | None) -> None:
    """Record a release of an engine that runs without Dynamo."""
    target = TARGETS / engine / f"{release}.json"
    target.parent.mkdir(exist_ok=True)
    text = release_file(open_wheel(f"{engine}=={release}"), digest=digest)
    kept = owned_tables(target)
    target.write_text(",\n".join([text.removesuffix("\n}\n"), *kept]) + "\n}\n", encoding="utf-8")
    print(f"{target}: {len(json.loads(target.read_text('utf-8'))['flags'])} flags of {engine} {release}")


if __name__ == "__main__":
    main()
