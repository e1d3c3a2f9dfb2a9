"""`vllm serve` with scripted weights, as llm-d's pods run it, one server a model, each on a Unix socket."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import openai

from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.vllm_cpu.installation import VLLM

_PROGRAM = Path(__file__).with_name("forked_programs.py")
#: Bounds a hang, not a speed.
_READY_SECONDS = 1800
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
}
#: Little KV cache, because all servers run at the same time.
_ENGINE = (
    *("--dtype", "float32", "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "4"),
    *("--kv-cache-memory-bytes", str(64 * 2**20)),
)


@contextmanager
def serving(folder: Path, models: Mapping[str, Sequence[str]]) -> Iterator[dict[str, openai.OpenAI]]:
    """Serve model directories in a folder, and yield a client for each.

    models: Arguments of each model's server, by the name of its directory.
    """
    programs = [
        {
            "module": "vllm.entrypoints.cli.main",
            "arguments": [
                *("serve", str(folder / name), "--served-model-name", name),
                *("--uds", str(folder / f"{name}.sock"), *_ENGINE, *arguments),
            ],
            "environment": {},
            "log": str(folder / f"{name}.log"),
        }
        for name, arguments in models.items()
    ]
    with ProcessGroup() as processes, ExitStack() as clients:
        processes.start(
            "vllm",
            [VLLM.python(print), _PROGRAM, json.dumps(programs)],
            environment={"PATH": os.defpath, "HOME": str(folder), **_ENVIRONMENT},
            log_path=folder / "vllm.log",
        )
        opened = {}
        for name in models:
            transport = httpx2.HTTPTransport(uds=str(folder / f"{name}.sock"))
            http = clients.enter_context(httpx2.Client(transport=transport, timeout=600))
            opened[name] = openai.OpenAI(
                base_url="http://vllm/v1", api_key="none", max_retries=0, http_client=http
            )
        for name, client in opened.items():
            _wait(client, processes, folder / f"{name}.log")
        yield opened
        processes.check()


def _wait(client: openai.OpenAI, processes: ProcessGroup, log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        processes.check()
        try:
            client.models.list()
        except openai.APIError:
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")[-3000:]
            time.sleep(0.2)
        else:
            return
