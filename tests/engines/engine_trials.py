"""Starts engines of vLLM on processors, one trial after another, and prints what each did.

It runs in the environment of the engines, and imports vLLM once for all trials: each is a forked process.
Arguments: a folder for logs with the folders of the models, and trials by name as JSON. A trial has the
folder of its model, the arguments of an engine, and those of a second one if prompts are computed by another
(``prefill``). If an engine is known to wait for ever, ``waits`` is what it logs then. A line of JSON per
trial says what it answered and counted, or how it failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# An engine with one device runs within one process, so that a trial takes seconds.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

import torch
import vllm.v1.worker.cpu_model_runner  # noqa: F401 -- the longest part of a start
from transformers import AutoConfig, AutoModelForCausalLM
from vllm import LLM, AsyncEngineArgs, RequestOutput, SamplingParams
from vllm.v1.engine.async_llm import AsyncLLM

_FORK = multiprocessing.get_context("fork")
_COMMON = {"dtype": "float32", "enforce_eager": True, "block_size": 64, "max_model_len": 1024}
# Token ids, so that no tokenizer is involved. No length is a whole number of blocks.
_PROMPTS = [
    {"prompt_token_ids": [(37 * index + 11 * number) % 900 + 50 for index in range(93 + 130 * number)]}
    for number in range(3)
]
_ANSWER_TOKENS = 12
#: Bounds a hang, not a speed.
_SECONDS = 500.0
#: An engine that goes on after the line with which others wait for ever answers within this time.
_WAITING_SECONDS = 60.0
# What a router writes into the request of a prefill worker (NIXL's protocol).
_DECODED_ELSEWHERE = {"do_remote_decode": True, "do_remote_prefill": False}


def main(directory: Path, trials: Mapping[str, Mapping[str, Any]]) -> None:
    """Run all trials."""
    for model in sorted({trial["model"] for trial in trials.values()}):
        writer = _FORK.Process(target=_write_weights, args=(directory / model,))
        writer.start()
        writer.join()
    for name, trial in trials.items():
        log = directory / f"{name}.log"
        print(json.dumps({"name": name} | _run(str(directory / trial["model"]), log, trial)), flush=True)


def _write_weights(model: Path) -> None:
    """Write random weights, so that an engine has the same ones however it splits them."""
    torch.manual_seed(0)
    written = (model / "config.json").read_bytes()
    config = AutoConfig.from_pretrained(model)
    config.initializer_range = 0.2  # answers that differ between prompts
    AutoModelForCausalLM.from_config(config).float().save_pretrained(model)
    (model / "config.json").write_bytes(written)


def _run(model: str, log: Path, trial: Mapping[str, Any]) -> dict[str, Any]:
    """Run the engines of one trial in processes of their own, and end them."""
    results, worker = _FORK.Pipe(duplex=False)
    handed_over, hand_over = _FORK.Pipe(duplex=False)
    starts: list[tuple[Callable[..., None], tuple[object, ...]]] = [
        (_answer, (model, log, trial["engine"], handed_over if "prefill" in trial else None, worker))
    ]
    if "prefill" in trial:
        starts.append((_compute_prompts, (model, log, trial["prefill"], hand_over, worker)))
    processes = [_FORK.Process(target=target, args=arguments) for target, arguments in starts]
    for process in processes:
        process.start()
    worker.close()
    try:
        result = _result(results, log, trial.get("waits"))
    except EOFError:
        result = {"error": "the engine's process ended without a word"}
    finally:
        for process in processes:
            process.terminate()
            process.join(30)
            with contextlib.suppress(ProcessLookupError):
                assert process.pid is not None, "it was started"
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
    return result


def _result(results: Connection, log: Path, waits: str | None) -> dict[str, Any]:
    """Return what an engine reports, or that it waits for ever."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        if results.poll(1):
            found: dict[str, Any] = results.recv()
            return found
        # After the line, it gets the time for an answer.
        if waits and log.exists() and waits in log.read_text(encoding="utf-8", errors="replace"):
            end, waits = min(end, time.monotonic() + _WAITING_SECONDS), None
    return {"error": f"no answer after {_SECONDS:.0f} s, or {_WAITING_SECONDS:.0f} s after it logged why"}


def _answer(
    model: str, log: Path, arguments: Mapping[str, Any], prompts: Connection | None, out: Connection
) -> None:
    """Answer all prompts, and report the answers and counters."""
    _write_to(log)
    try:
        if "data_parallel_size" in arguments:
            out.send(_outcome(asyncio.run(_answers_of_ranks(model, arguments)), {}))
            return
        # LMCache has loaded llvmlite in this process, which vLLM's replacement of kernels fails at
        # (``_rebind_kernels`` in ``vllm/triton_utils/dispatcher.py`` of 0.31.0). Workers are other processes.
        if arguments.get("kv_transfer_config", {}).get("kv_connector") == "LMCacheMPConnector":
            os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "1", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
        engine = _engine(model, arguments, port=5701)
        parameters = [_sampling(_ANSWER_TOKENS, each) for each in (prompts.recv() if prompts else [None] * 3)]
        answers = engine.generate(_PROMPTS, parameters, use_tqdm=False)
        counters = {each.name: each.value for each in engine.get_metrics() if hasattr(each, "value")}
        out.send(_outcome(answers, counters))
    except Exception as error:  # noqa: BLE001 -- whatever an engine fails with is the result
        out.send({"error": f"{type(error).__name__}: {error}"})


async def _answers_of_ranks(model: str, arguments: Mapping[str, Any]) -> list[RequestOutput]:
    """Return the answers of an engine whose ranks are processes of their own, all prompts at once."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model, **{**_COMMON, **arguments}))

    async def answer(number: int) -> RequestOutput:
        stream = engine.generate(_PROMPTS[number], _sampling(_ANSWER_TOKENS, None), str(number))
        return [each async for each in stream][-1]

    return await asyncio.gather(*map(answer, range(len(_PROMPTS))))


def _outcome(answers: Sequence[RequestOutput], counters: Mapping[str, float]) -> dict[str, Any]:
    return {
        "error": None,
        "prompts": [len(each.prompt_token_ids) for each in answers],
        "answers": [list(each.outputs[0].token_ids) for each in answers],
        "counters": dict(counters),
    }


def _compute_prompts(
    model: str, log: Path, arguments: Mapping[str, Any], hand_over: Connection, out: Connection
) -> None:
    """Compute all prompts, and say where another engine finds their KV cache."""
    _write_to(log)
    try:
        engine = _engine(model, arguments, port=5601)
        computed = engine.generate(_PROMPTS, _sampling(1, _DECODED_ELSEWHERE), use_tqdm=False)
        hand_over.send([each.kv_transfer_params for each in computed])
    except Exception as error:  # noqa: BLE001 -- as above
        out.send({"error": f"prefill: {type(error).__name__}: {error}"})
    multiprocessing.Event().wait()  # until the cache was read


def _engine(model: str, arguments: Mapping[str, Any], port: int) -> LLM:
    os.environ |= {"VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1", "VLLM_NIXL_SIDE_CHANNEL_PORT": str(port)}
    return LLM(model, disable_log_stats=False, **{**_COMMON, **arguments})


def _sampling(tokens: int, transfer: Mapping[str, Any] | None) -> SamplingParams:
    extra = {"kv_transfer_params": transfer} if transfer else None
    return SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, extra_args=extra)


def _write_to(log: Path) -> None:
    """Send all output of this process and its children to a file, and make them one group of processes."""
    os.setpgid(0, 0)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
