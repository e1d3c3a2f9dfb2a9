"""Sends requests to workers that die of one of them, within a network namespace, and writes what happened.

``python -m tests.local.poison.driver FOLDER``. The frontend is the plan's, with its filter as it is packed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import aiohttp

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import FilePath
from inference_contracts.request_filter import SETTINGS_VARIABLE, FilterSettings
from inference_local.serving.process_commands import environment, frontend_command
from tests.local.poison.batch_lines import run_shares
from tests.local.poison.worker import DEADLY, MODEL

_WORKERS: Final = 4
_BYSTANDERS: Final = 200
_PORT: Final = 8000
_BASE: Final = f"http://127.0.0.1:{_PORT}"
_URL: Final = f"{_BASE}/v1/chat/completions"
#: Short times, so that the test sees their end. Workers drain for longer than the filter needs to know it.
_REFUSED_SECONDS, _DRAIN_SECONDS, _FINISH_SECONDS = 20.0, 3.0, 6
_TRYING_SECONDS: Final = 6.0
#: After their refusal, suspects are let through one at a time, so dozens of them take their time.
_PATIENCE_SECONDS: Final = 180.0


class Workers:
    """Workers that are started again when they die, as by kubelet or ECS."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._folder, self._variables = folder, variables
        self.notes = folder / "notes.txt"
        self.running: list[subprocess.Popen[bytes]] = []
        self.deaths = 0
        self.ending: set[int] = set()

    def start(self) -> None:
        words = ["tests.local.poison.worker", str(self._folder / "model"), str(self.notes)]
        number = len(list(self._folder.glob("worker-*.log")))
        with (self._folder / f"worker-{number}.log").open("wb") as log:
            self.running.append(
                subprocess.Popen([sys.executable, "-m", *words], env=self._variables, stdout=log, stderr=log)
            )

    async def keep(self) -> None:
        while True:
            for worker in [each for each in self.running if each.poll() is not None]:
                self.running.remove(worker)
                if worker.pid not in self.ending:
                    self.deaths += 1
                    self.start()
            await asyncio.sleep(0.1)

    def noted(self) -> list[str]:
        return self.notes.read_text().splitlines() if self.notes.exists() else []


async def ask(
    session: aiohttp.ClientSession, text: str, tokens: int, **headers: str
) -> tuple[bool, int, str | None]:
    """Ask for a stream, and return whether it was answered, the status, and the code of the error."""
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": text}]}
    body |= {"max_tokens": tokens, "stream": True}
    try:
        async with session.post(_URL, json=body, headers=headers) as answer:
            content = await answer.text()
            # Errors of the frontend itself have no `error`, and before it is ready no body.
            if answer.status != HTTPStatus.OK:
                found = json.loads(content or "{}")
                return False, answer.status, found.get("error", {}).get("code")
            return '"finish_reason":"length"' in content, answer.status, None
    except aiohttp.ClientError:
        return False, 0, None


async def answered_at_last(session: aiohttp.ClientSession, text: str) -> bool:
    """Ask as a patient caller does: again after each refusal or failure."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        done, _, _ = await ask(session, text, 40)
        if done:
            return True
        await asyncio.sleep(1)
    return False


async def poisoned(session: aiohttp.ClientSession, workers: Workers) -> dict[str, Any]:
    """Send one deadly request again and again, beside others."""
    bystanders = [
        asyncio.create_task(answered_at_last(session, f"bystander {each}")) for each in range(_BYSTANDERS)
    ]
    await asyncio.sleep(1)
    end, codes = time.monotonic() + _TRYING_SECONDS, []
    while time.monotonic() < end:
        _, status, code = await ask(session, "poison", DEADLY)
        codes.append(code or str(status))
        await asyncio.sleep(0.02)
    deaths = workers.deaths
    return {
        "deaths": deaths,
        "codes": sorted(set(codes)),
        "tries": len(codes),
        "answered": sum(await asyncio.gather(*bystanders)),
        "other": (await ask(session, "another", 2))[0],
    }


async def batched(workers: Workers) -> dict[str, Any]:
    """Run 200 lines of a job and a deadly one, in two processes of batch."""
    before, half = workers.deaths, _BYSTANDERS // 2
    shares = [[DEADLY, *([40] * half)], [40] * half]
    rows = await run_shares(_BASE, MODEL, shares)
    return {
        "deaths": workers.deaths - before,
        "answered": sum((row["response"] or {}).get("status_code") == HTTPStatus.OK for row in rows),
        "errors": [(row["custom_id"], row["error"]) for row in rows if row["error"]],
    }


async def drained(session: aiohttp.ClientSession, workers: Workers) -> dict[str, Any]:
    """End two workers as a rollout does, while a request is in progress that outlives them."""
    asked = asyncio.create_task(ask(session, "long", 300))
    await asyncio.sleep(1)
    for worker in workers.running[:2]:
        workers.ending.add(worker.pid)
        worker.send_signal(signal.SIGTERM)
        await asyncio.sleep(_FINISH_SECONDS + _DRAIN_SECONDS)
    done, status, code = await asked
    return {"answered": done, "status": status, "code": code}


async def cancelled(session: aiohttp.ClientSession, workers: Workers) -> bool:
    """Hang up in the middle of an answer, and return whether its worker stopped."""
    asked = asyncio.create_task(ask(session, "given up", 777))
    while not any(line.endswith("asked 777") for line in workers.noted()):
        await asyncio.sleep(0.05)
    asked.cancel()
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        if any(line.endswith("stopped 777") for line in workers.noted()):
            return True
        await asyncio.sleep(0.1)
    return False


async def pinned(session: aiohttp.ClientSession, workers: Workers) -> int:
    """Ask eight times for one worker, and return how many workers were asked."""
    async with session.get(f"http://127.0.0.1:{_PORT}/health") as page:
        instances = (await page.json())["instances"]
    (first, *_) = [each["instance_id"] for each in instances if each["endpoint"] == "generate"]
    before = len(workers.noted())
    for each in range(8):
        await ask(session, f"pinned {each}", 1, **{"x-dynamo-worker-instance-id": str(first)})
    return len({line.split()[0] for line in workers.noted()[before:]})


async def switched_off(session: aiohttp.ClientSession) -> int:
    """Set a threshold at which Dynamo's frontend refuses requests, and return the status."""
    body = {"model": MODEL, "active_decode_blocks_threshold": 0.0, "active_prefill_tokens_threshold": 0}
    async with session.post(f"http://127.0.0.1:{_PORT}/busy_threshold", json=body) as answer:
        return answer.status


def _frontend(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return command and variables of the plan's frontend, with the short times of this test."""
    deployment = build_plan(load_blueprint("quickstart-g6e").blueprint).models[0].deployments[0]
    process = deployment.entry_point
    file = process.environment[SETTINGS_VARIABLE]
    assert isinstance(file, FilePath)
    settings = dataclasses.replace(
        FilterSettings.from_text(file.text), refused_seconds=_REFUSED_SECONDS, drain_seconds=_DRAIN_SECONDS
    )
    planned = {**process.environment, SETTINGS_VARIABLE: FilePath(file.name, settings.as_text())}
    words = frontend_command(process, _PORT)
    words[words.index("--router-mode") + 1] = "round-robin"
    return words, {"PATH": os.environ["PATH"], **environment(planned, folder)}


def noted(folder: Path) -> int:
    """Return how many deaths the filter has seen."""
    lines = (folder / "frontend.log").read_text(errors="replace").splitlines()
    return sum('"event": "worker died"' in line for line in lines)


async def main(folder: Path) -> None:
    command, variables = _frontend(folder)
    finish = {"DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS": str(_FINISH_SECONDS)}
    python = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    workers = Workers(folder, {**variables, **finish, **python})
    with (folder / "frontend.log").open("wb") as log:
        frontend = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
    for _ in range(_WORKERS):
        workers.start()
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            end = time.monotonic() + _PATIENCE_SECONDS
            while not (await ask(session, "hello", 1))[0]:
                assert time.monotonic() < end, "no worker answers"
                await asyncio.sleep(0.5)
            await asyncio.sleep(3)
            keeping = asyncio.create_task(workers.keep())
            result: dict[str, Any] = {
                "workers_asked": await pinned(session, workers),
                "busy_threshold": await switched_off(session),
                "stopped": await cancelled(session, workers),
            }
            result |= await poisoned(session, workers)
            result["drained"] = await drained(session, workers)
            result["noted"] = noted(folder)
            result["batch"] = await batched(workers)
            keeping.cancel()
        frontend.send_signal(signal.SIGTERM)
        result["exit"] = frontend.wait(_PATIENCE_SECONDS)
    finally:
        for process in (frontend, *workers.running):
            process.kill()
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
