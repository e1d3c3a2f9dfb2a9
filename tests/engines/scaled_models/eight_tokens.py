"""Loads each model directory in vLLM and writes eight tokens: one JSON line a model, with tokens or an error.

It runs in vLLM's environment. The library is imported once, and each model gets a process by ``fork``.
"""

from __future__ import annotations

import json
import os
import signal
import sys

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

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


def _written(directory: str) -> dict[str, object]:
    engine = vllm.LLM(
        model=directory,
        load_format="dummy",
        dtype="float32",
        enforce_eager=True,
        max_model_len=2048,
        max_num_seqs=2,
        seed=0,
        disable_log_stats=True,
    )
    eight = vllm.SamplingParams(max_tokens=8, ignore_eos=True, temperature=0)
    [completion] = engine.generate("bado gufi", eight)
    found: dict[str, object] = {"tokens": list(completion.outputs[0].token_ids)}
    [chat] = engine.chat(_CONVERSATION, eight, tools=[_WEATHER])
    return found | {"prompt": engine.get_tokenizer().decode(chat.prompt_token_ids)}


def _child(directory: str, output: int) -> None:
    signal.alarm(_SECONDS)
    try:
        found = _written(directory)
    except BaseException as error:
        found = {"error": f"{type(error).__name__}: {error}"}
        import traceback

        traceback.print_exc()
    os.write(output, (json.dumps({"model": directory, **found}) + "\n").encode())
    os._exit(0)


def main() -> None:
    """Write a line for each directory that is named as an argument."""
    for directory in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            _child(directory, sys.stdout.fileno())
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"model": directory, "error": f"ended with status {status}"}), flush=True)


if __name__ == "__main__":
    main()
