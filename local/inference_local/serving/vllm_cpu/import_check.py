"""Imports what the workers need, and writes the versions.

The environment's Python runs it as ``import_check.py FILE``: that environment does not have this library.
"""

import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path

#: Dynamo's worker; NIXL, which moves the KV cache between workers; LMCache, which keeps it beside them.
_MODULES = ("dynamo.vllm.main", "nixl._api", "lmcache.integration.vllm.lmcache_mp_connector")
_PACKAGES = ("vllm", "ai-dynamo", "nixl", "torch")


def main(target: Path) -> None:
    """Import, check that vLLM chose the CPU and loaded its kernels, and write the versions to a JSON file."""
    platform = importlib.import_module("vllm.platforms").current_platform
    if not platform.is_cpu():
        sys.exit(f"vLLM chose the platform {platform.device_type or 'none'}, not the CPU")
    platform.import_kernels()
    torch = importlib.import_module("torch")
    if not hasattr(torch.ops._C, "silu_and_mul"):
        sys.exit("vLLM did not load its kernels for the CPU")
    for name in _MODULES:
        importlib.import_module(name)
    target.write_text(json.dumps({name: version(name) for name in _PACKAGES}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
