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

from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.processes.free_ports import free_ports
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.targets.local.process_commands import environment, frontend_command
from tests.local.targets.local.answers.answer_families import Family
from tests.local.targets.local.answers.scripted_models import blueprint_of

_READY_SECONDS = 60


@contextmanager
def answering(
    script: Sequence[Mapping[str, Any]], family: Family, folder: Path, extra: Mapping[str, str]
) -> Iterator[str]:
    """Yield the address of the API once every model of the script is listed.

    The frontend is that of the family's plan, with ``extra`` variables.
    """
    (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    frontend = build_plan(blueprint_of(family)).models[0].deployments[0].processes[0]
    variables = environment(frontend.environment, folder) | dict(extra)
    [port] = free_ports(1)
    engine = [sys.executable, Path(__file__).with_name("scripted_engine.py"), folder / "script.json"]
    with ProcessGroup() as processes:
        processes.start(
            "frontend", frontend_command(frontend, port), environment=variables, log_path=folder / "f.log"
        )
        processes.start("engine", engine, environment=variables, log_path=folder / "engine.log")
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
