"""Record the flags of LMCache's server and the fields of its adapters that the serving plan may write.

    .venv/bin/python scripts/record_lmcache_flags.py > tests/unit/serving/lmcache_flags.json

LMCache is not installed, because it needs torch. The script reads its parsers from the wheel on the package
index.
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile

from inference_catalog.engine_wheels.wheels import open_remote_wheel

RELEASE = "lmcache==0.5.6"
PARSERS = ("lmcache/v1/multiprocess/config.py", "lmcache/v1/distributed/config.py")
CONNECTOR = (
    "lmcache/integration/vllm/lmcache_mp_connector.py",
    "lmcache/integration/vllm/mp_server_launcher.py",
)
ADAPTERS = "lmcache/v1/distributed/l2_adapters"
# Functions that look up a field: the mapping itself, and one helper per type.
_READERS = {"d.get", "eviction_dict.get", "_int", "_bool", "_opt_str"}
ADAPTER_MODULES = {"fs_native": "fs_native_l2_adapter", "s3": "s3_l2_adapter"}


def main() -> None:
    """Write the flags and fields of the wheel's parsers as JSON."""
    wheel = open_remote_wheel(RELEASE)
    flags = {text for path in PARSERS for text in _texts(wheel, path) if text.startswith("--")}
    # The adapters' flag is added by the module of their configurations.
    flags |= {text for text in _texts(wheel, f"{ADAPTERS}/config.py") if text.startswith("--")}
    keys = {text for path in CONNECTOR for text in _texts(wheel, path) if text.startswith("lmcache.mp.")}
    shared = _read_keys(wheel, f"{ADAPTERS}/config.py")
    record = {
        "source": f"{RELEASE}: {', '.join((*PARSERS, *CONNECTOR, ADAPTERS))}",
        "flags": sorted(flag for flag in flags if " " not in flag),
        "connectorKeys": sorted(key for key in keys if " " not in key),
        "adapters": {
            name: sorted(_read_keys(wheel, f"{ADAPTERS}/{module}.py") | {"type", "eviction"})
            for name, module in ADAPTER_MODULES.items()
        },
        "evictionKeys": sorted(key for key in shared if key.startswith(("eviction_", "trigger_"))),
    }
    json.dump(record, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _tree(wheel: zipfile.ZipFile, path: str) -> ast.Module:
    """Parse a module of the wheel."""
    return ast.parse(wheel.read(path))


def _texts(wheel: zipfile.ZipFile, path: str) -> set[str]:
    """Return every string of a module."""
    nodes = ast.walk(_tree(wheel, path))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _read_keys(wheel: zipfile.ZipFile, path: str) -> set[str]:
    """Return the keys that a module looks up in a mapping, directly or with its helpers."""
    found = set()
    for node in ast.walk(_tree(wheel, path)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        key = node.args[0]
        if ast.unparse(node.func) in _READERS and isinstance(key, ast.Constant):
            found.add(str(key.value))
    return found


if __name__ == "__main__":
    main()
