"""vLLM's KV cache connectors on this machine: NIXL over UCX, and LMCache from the memory of a CPU."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from inference_local.serving.vllm_cpu.argument_rules import Rule, RuledWorker, Values

#: Why network devices of AWS are not used.
NO_EFA = "this machine has no EFA; NIXL uses UCX and the host's memory"
#: GiB of memory of each LMCache server.
LMCACHE_GIB = 1
# Otherwise vLLM gives NIXL four threads, which poll while blocks move (``nixl/base_worker.py``, vLLM 0.31.0).
_ONE_THREAD: Mapping[str, int] = MappingProxyType({"num_threads": 0})
_NO_POLLING = "NIXL's own threads would poll, so it has none"
# ``v1/kv_offload/cpu/spec.py``
_NO_HOST_CACHE = "vLLM copies KV cache to host memory from GPUs only"
_SMALL = "the workers share this machine's memory and disk"
#: Why KV cache is in no bucket.
NO_BUCKET = "LMCache reaches buckets of AWS only, and this machine has those of an emulator"
_NO_PREFIX = (
    "vLLM on a CPU keeps no prefix of prompts with latent attention (MLA), so LMCache would find nothing"
)
_OWN_SERVER = "all workers share this machine, so each LMCache server has ports and a folder of its own"
# Workers on a CPU use the operations of ``v1/multiprocess/modules/engine_driven_transfer.py``
# (``v1/platform/devices/cpu/__init__.py``). By default, a server has those of ``lmcache_driven`` only
# (``v1/multiprocess/config.py``, all of LMCache 0.5.6).
_FROM_PROCESSORS = (
    "on a CPU, workers copy KV cache to LMCache's server themselves; "
    "by default it only copies from GPUs, and the worker waits for ever"
)
_S3 = "s3"
_MODE = "supported-transfer-mode"
_PORT, _ARGUMENTS = "lmcache.mp.port", "lmcache.mp.autostart.server_args"

#: What differs of LMCache, as rows of the table of exceptions: setting, value on this machine, reason.
LMCACHE_ROWS = (
    (f"`--{_MODE}` of LMCache's server", "`auto`", _FROM_PROCESSORS),
    ("`--l1-size-gb` of LMCache's server", f"`{LMCACHE_GIB}`", _SMALL),
    ("`max_capacity_gb` of LMCache on NVMe", f"`{LMCACHE_GIB}`", _SMALL),
    ("`base_path` of LMCache on NVMe", "a folder of the worker", _OWN_SERVER),
    ("LMCache's tier in S3", "left out", NO_BUCKET),
    (f"`{_PORT}` and `--http-port` of LMCache", "ports of the worker's own", _OWN_SERVER),
)


def _here(values: Values, worker: RuledWorker) -> Values | None:
    """Return the connectors that work on this machine."""
    whole = json.loads(values[0])
    kept = [found for child in _children(whole) if (found := _child(child, worker))]
    if not kept:
        return None
    [first, *others] = kept
    several = {**whole, "kv_connector_extra_config": {"connectors": kept}}
    policy = {name: value for name, value in whole.items() if not name.startswith("kv_connector")}
    return (_text(several if others else {**policy, **first}),)


def _text(settings: Mapping[str, Any]) -> str:
    """Return settings as JSON whose paths stay readable in the report."""
    return json.dumps(settings, separators=(",", ":"), ensure_ascii=False)


def _children(whole: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = whole.get("kv_connector_extra_config", {}).get("connectors", [whole])
    return found


def _child(child: dict[str, Any], worker: RuledWorker) -> dict[str, Any] | None:
    """Return a connector on this machine; None if it is left out."""
    if child["kv_connector"] == "NixlConnector":
        return {**child, "kv_buffer_device": "cpu", "kv_connector_extra_config": dict(_ONE_THREAD)}
    if child["kv_connector"] == "LMCacheMPConnector" and not worker.latent_attention:
        return {**child, "kv_connector_extra_config": _lmcache(child["kv_connector_extra_config"], worker)}
    return None


def _lmcache(planned: Mapping[str, Any], worker: RuledWorker) -> dict[str, Any]:
    """Return the settings of LMCache with a server that this machine can run."""
    # LMCache starts servers on 127.0.0.1 only (``lmcache/integration/vllm/mp_server_launcher.py``, 0.5.6).
    return {
        **planned,
        _PORT: worker.own_port(planned[_PORT]),
        _ARGUMENTS: shlex.join(_server(planned, worker)),
    }


def _server(planned: Mapping[str, Any], worker: RuledWorker) -> Iterator[str]:
    """Yield the arguments of LMCache's server."""
    for flag, value in _pairs(planned):
        if flag == "--l2-adapter":
            adapter = json.loads(value)
            if adapter["type"] != _S3:
                adapter |= {"base_path": str(worker.kv_cache_directory), "max_capacity_gb": LMCACHE_GIB}
                yield from (flag, _text(adapter))
        elif flag == "--l1-size-gb":
            yield from (flag, str(LMCACHE_GIB))
        elif flag == "--http-port":
            yield from (flag, worker.own_port(int(value)))
        else:
            yield from (flag, value)
    yield from (f"--{_MODE}", "auto")


def _pairs(planned: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the planned arguments of LMCache's server. Each has one value."""
    words = shlex.split(planned[_ARGUMENTS])
    yield from zip(words[::2], words[1::2], strict=True)


def _reason(values: Values, worker: RuledWorker) -> str:
    """Return why each connector of a worker differs."""
    children = sorted(_children(json.loads(values[0])), key=itemgetter("kv_connector"))
    return "; ".join(dict.fromkeys(reason for child in children for reason in _reasons(child, worker)))


def _reasons(child: Mapping[str, Any], worker: RuledWorker) -> Iterator[str]:
    """Yield why a connector differs."""
    if child["kv_connector"] == "NixlConnector":
        yield from (NO_EFA, _NO_POLLING)
    elif child["kv_connector"] != "LMCacheMPConnector":
        yield _NO_HOST_CACHE
    elif worker.latent_attention:
        yield _NO_PREFIX
    else:
        yield from (_FROM_PROCESSORS, _SMALL, _OWN_SERVER)
        tiers = [
            value for flag, value in _pairs(child["kv_connector_extra_config"]) if flag == "--l2-adapter"
        ]
        if any(json.loads(tier)["type"] == _S3 for tier in tiers):
            yield NO_BUCKET


#: How ``--kv-transfer-config`` differs.
RULE = Rule(
    _here,
    f"{NO_EFA}; {_NO_HOST_CACHE}; {_FROM_PROCESSORS}; {_NO_PREFIX}",
    "NIXL over UCX; LMCache with the settings below, without latent attention; no other connectors",
    _reason,
)
