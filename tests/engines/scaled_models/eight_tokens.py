"""Loads each model directory in vLLM and writes eight tokens: one JSON line a model, with tokens or an error.

An error has the file and the line of vLLM that raised it. It runs in vLLM's environment. The library is
imported once, and each model gets a process by ``fork``. The engine runs in that process, or in one of its
own as it does in a server.

Arguments: the file for the lines; as JSON, by the directory of each model, how many processes share it and
whether the engine has its own; and ``AVX2`` if vLLM shall take the processor for one without AVX-512 and AMX,
which it cannot in a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import IO

import torch

if "AVX2" in sys.argv:
    # ``import_kernels`` in ``vllm/platforms/cpu.py`` chooses the library by these, when vLLM is imported.
    for feature in ("avx512", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_fp16"):
        setattr(torch.cpu, f"_is_{feature}_supported", lambda: False)

import vllm
import vllm.entrypoints.llm
import vllm.model_executor.models

_SECONDS = 240
_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_CALL = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
_CONVERSATION = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "functions.get_weather:0", "type": "function", "function": _CALL}],
    },
    {"role": "tool", "tool_call_id": "functions.get_weather:0", "name": "get_weather", "content": "Mild."},
]


def _written(directory: str, processes: int) -> dict[str, object]:
    engine = vllm.LLM(
        model=directory,
        load_format="dummy",
        dtype="float32",
        enforce_eager=True,
        max_model_len=2048,
        max_num_seqs=2,
        tensor_parallel_size=processes,
        seed=0,
        disable_log_stats=True,
    )
    eight = vllm.SamplingParams(max_tokens=8, ignore_eos=True, temperature=0)
    [completion] = engine.generate("bado gufi", eight)
    found: dict[str, object] = {"tokens": list(completion.outputs[0].token_ids)}
    [chat] = engine.chat(_CONVERSATION, eight, tools=[_WEATHER])
    return found | {"prompt": engine.get_tokenizer().decode(chat.prompt_token_ids), "libraries": _libraries()}


def _libraries() -> list[str]:
    """Return the names of vLLM's libraries of kernels that this process has loaded."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return sorted({line.rpartition("/")[2].partition(".")[0] for line in lines if "/vllm/_C" in line})


def _child(directory: str, processes: int, *, own_process: bool, output: IO[str]) -> None:
    """Write the line of one model, and end the process whatever happens."""
    os.setpgid(0, 0)
    signal.alarm(_SECONDS)
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = str(int(own_process))
    try:
        found = _written(directory, processes)
    except BaseException as error:  # noqa: BLE001 - what the engine fails with is the result
        traceback.print_exc()
        *_, place = traceback.extract_tb(error.__traceback__)
        found = {"error": f"{type(error).__name__}: {error} ({place.filename}: {place.line})"}
    output.write(json.dumps({"model": directory, **found}) + "\n")
    output.flush()
    os._exit(0)


def main() -> None:
    """Write a line for each directory."""
    with Path(sys.argv[1]).open("a", encoding="utf-8") as output:
        for directory, (processes, own_process) in json.loads(sys.argv[2]).items():
            child = os.fork()
            if child == 0:
                _child(directory, processes, own_process=own_process, output=output)
            _, status = os.waitpid(child, 0)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what the engine started
            if status:
                output.write(json.dumps({"model": directory, "error": f"ended with status {status}"}) + "\n")
                output.flush()


if __name__ == "__main__":
    main()
