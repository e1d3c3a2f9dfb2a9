"""Starts an engine for each model directory and asks it once: a line of JSON for each, with its error.

It runs in vLLM's environment. The library is imported once, and each model gets a process by ``fork``.
Arguments: the file for the lines, and as JSON the further arguments of an engine by directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

# The engine runs within the process, so that a model takes seconds.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

import vllm
import vllm.entrypoints.llm
import vllm.model_executor.models
import vllm.v1.engine.core
import vllm.v1.worker.cpu_model_runner

_SECONDS = 240
_COMMON = {"load_format": "dummy", "dtype": "bfloat16", "enforce_eager": True, "max_num_seqs": 4}


def _asked(directory: str, arguments: dict[str, Any], found: dict[str, Any]) -> None:
    """Start an engine and ask it. What it reported before an error stays in ``found``."""
    update = vllm.v1.engine.core.update_kv_cache_capacity

    def reported(config: Any, cache: Any) -> None:
        update(config, cache)
        found["tokens"] = config.cache_config.kv_cache_size_tokens
        found["memory"] = config.cache_config.kv_cache_memory_bytes
        found["batched"] = config.scheduler_config.max_num_batched_tokens
        found["prefixes"] = bool(config.cache_config.enable_prefix_caching)

    vllm.v1.engine.core.update_kv_cache_capacity = reported
    engine = vllm.LLM(model=directory, **_COMMON, **arguments)
    four = vllm.SamplingParams(max_tokens=4, ignore_eos=True, temperature=0)
    [answer] = engine.generate("bado gufi", four)
    found["answer"] = list(answer.outputs[0].token_ids)


def _child(directory: str, arguments: dict[str, Any], output: Any) -> None:
    """Write the line of one model, and end the process whatever happens."""
    os.setpgid(0, 0)
    signal.alarm(_SECONDS)
    found: dict[str, Any] = {"model": directory}
    try:
        _asked(directory, arguments, found)
    except BaseException as error:  # noqa: BLE001 - what the engine fails with is the result
        traceback.print_exc()
        found["error"] = "".join(traceback.format_exception(error))
    output.write(json.dumps(found) + "\n")
    output.flush()
    os._exit(0)


def main() -> None:
    """Write a line for each directory."""
    with Path(sys.argv[1]).open("a", encoding="utf-8") as output:
        for directory, arguments in json.loads(sys.argv[2]).items():
            child = os.fork()
            if child == 0:
                _child(directory, arguments, output)
            _, status = os.waitpid(child, 0)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what the engine started
            if status:
                output.write(json.dumps({"model": directory, "error": f"ended with status {status}"}) + "\n")
                output.flush()


if __name__ == "__main__":
    main()
