"""The programs as the task definition holds them: in a variable, run by a command."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from task_start import live_check

from inference_blueprints.render.ecs.task_program import TASK_PROGRAM, program_command, task_program
from inference_blueprints.serving.packed_program import _text_of, packed_program
from tests.runtime.task_start.conftest import Agent

#: Of the 64 KiB of a task definition (Amazon ECS Developer Guide, "Service quotas").
LARGEST = 13_000


def run(module: str, program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *program_command(module, *words)[1:]]
    environment = {"PATH": os.environ["PATH"], TASK_PROGRAM: task_program(program), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.clock
def test_an_engine_starts_from_the_variable(
    agent: Agent, new_host: Callable[[], str], tmp_path: Path
) -> None:
    says = "import os, sys; print(sys.argv[1], os.environ.get('TASK_PROGRAM'))"
    words = ("--", sys.executable, "-c", says, "$(port:system)")
    document = json.dumps({"network": "host", "ports": {"system": 5}})
    agent.address = new_host()
    result = run(
        "task_start", "task_start", *words, TASK_START=document, TMPDIR=str(tmp_path), **agent.variables()
    )
    assert result.stdout.splitlines()[-1] == "20005 None", result.stderr


@pytest.mark.parametrize("module", ["task_start", "task_start.node_fill"])
def test_a_program_leaves_room_in_the_task_definition(module: str) -> None:
    assert len(task_program(module)) < LARGEST
    assert packed_program.__wrapped__(module) == task_program(module)


@pytest.mark.clock
def test_the_host_is_filled_from_the_variable() -> None:
    result = run("task_start.node_fill", "task_start.node_fill")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("error: environment variables are missing: NODE_CACHE_FOLDER")


@pytest.mark.clock
def test_the_health_check_asks_the_engine_at_its_port(agent: Agent, tmp_path: Path) -> None:
    known = {"address": "127.0.0.1", "ports": {"system": agent.server_address[1]}}
    (tmp_path / "task-ports.json").write_text(json.dumps(known))
    assert run("task_start.live_check", "task_start", TMPDIR=str(tmp_path)).returncode == 0
    known["ports"] = {"system": 1}
    (tmp_path / "task-ports.json").write_text(json.dumps(known))
    dead = run("task_start.live_check", "task_start", TMPDIR=str(tmp_path))
    assert (dead.returncode, "not live" in dead.stderr) == (1, True)


@pytest.mark.parametrize(("is_served", "code"), [(True, 0), (False, 1)])
def test_the_health_check_reads_the_port_that_the_task_wrote(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_served: bool, code: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ports = {"system": agent.server_address[1] if is_served else 1}
    (tmp_path / "task-ports.json").write_text(json.dumps({"address": "127.0.0.1", "ports": ports}))
    assert live_check.main() == code


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("""f"no {', '.join(tags)}" """, """f"no {', '.join(tags)}\""""),
        ("""f"{f'{a:,}'.strip()!r:>{width}}" """, """f"{f'{a:,}'.strip()!r:>{width}}\""""),
        ('f"{a if b else c} {{x}}\\n"', "f'{(a if b else c)} {{x}}\\n'"),
        ("f'''{label}=\"{names['x']}\" '''", "f'''{label}=\"{names['x']}\" '''"),
    ],
)
def test_the_text_of_a_program_is_that_of_python_3_11(code: str, written: str) -> None:
    """Red on Python 3.12 and later if they write quotes within quotes, which Python 3.11 does not read."""
    assert _text_of(ast.parse(code.strip())) == written
