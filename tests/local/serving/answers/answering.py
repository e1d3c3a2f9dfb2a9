"""Dynamo's real frontend with the plan's environment, in front of a scripted engine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai

from inference_blueprints.serving.plan import build_plan
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from inference_local.serving.process_commands import environment, frontend_command
from tests.local.serving.answers.answer_families import Family
from tests.local.serving.answers.scripted_models import blueprint_of

_READY_SECONDS = 240


@contextmanager
def answering(
    script: Sequence[Mapping[str, Any]],
    family: Family,
    folder: Path,
    extra: Mapping[str, str],
    *others: Sequence[Mapping[str, Any]],
    arguments: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the address of the API once every model of the script is listed.

    The frontend is that of the family's plan, with ``extra`` variables and more arguments. Each of the other
    scripts has an engine of its own; they may serve the same models.
    """
    frontend = build_plan(blueprint_of(family)).models[0].deployments[0].processes[0]
    variables = environment(frontend.environment, folder) | dict(extra)
    [port] = free_ports(1)
    with ProcessGroup() as processes:
        command = [*frontend_command(frontend, port), *arguments]
        processes.start("frontend", command, environment=variables, log_path=folder / "f.log")
        for number, each in enumerate((script, *others)):
            file = folder / f"script{number}.json"
            file.write_text(json.dumps(each), encoding="utf-8")
            engine: list[str | Path] = [sys.executable, Path(__file__).with_name("scripted_engine.py"), file]
            processes.start(
                f"engine{number}", engine, environment=variables, log_path=folder / f"engine{number}.log"
            )
        address = f"http://127.0.0.1:{port}/v1"
        _wait_for_models(address, processes, len(script))
        yield address
        processes.check()


def _wait_for_models(address: str, processes: ProcessGroup, count: int) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as client:
        while True:
            processes.check()
            try:
                if len(client.models.list().data) == count:
                    return
            except openai.APIError as error:
                if time.monotonic() > deadline:
                    raise AssertionError("the frontend does not answer") from error
            assert time.monotonic() < deadline, "not every model is listed"
            time.sleep(0.05)
