"""A machine that lacks something says so before a run does anything."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import yaml

from inference_blueprints.loading import load_blueprint, parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint, GpuHealth
from inference_contracts.errors import UserError
from inference_contracts.units import GIB, MIB
from inference_local.environments import run_requirements
from inference_local.environments.run_requirements import (
    FreeSpace,
    check_machine,
    missing_memory,
    missing_space,
    missing_watches,
    skipped_steps,
    used_ports,
)
from tests.templates.shared_platform import document


def test_a_full_disk_names_folder_numbers_and_remedy() -> None:
    """Without it, a full disk ended in a traceback of the CDK's runtime after half a minute."""
    spaces = [
        FreeSpace(Path("build/run"), 20 * MIB, 300 * MIB, "choose another --run-directory"),
        FreeSpace(Path("cache"), 50 * MIB, 50 * MIB, "set TMPDIR"),
    ]
    assert list(missing_space(spaces)) == [
        "build/run has 20 MiB of free disk space, a run needs 300 MiB there; choose another --run-directory"
    ]


def test_more_workers_need_more_memory() -> None:
    quickstart = build_plan(load_blueprint("quickstart-g6e").blueprint)
    large = build_plan(load_blueprint("llm-d-disaggregated").blueprint)
    assert list(missing_memory(int(1.3 * GIB), quickstart)) == []
    [line] = missing_memory(int(1.3 * GIB), large)
    assert line.startswith("this machine has 1.3 GiB of free memory, the run needs about 1.")


def test_too_few_watches_are_said_before_a_worker_dies() -> None:
    """Beside other runs, a worker ended with "Too many open files" after some seconds."""
    plan = build_plan(load_blueprint("quickstart-g6e").blueprint)
    assert list(missing_watches(lambda wanted: wanted, plan)) == []
    [line] = missing_watches(lambda wanted: min(wanted, 5), plan)
    assert line.startswith("this user can open 5 more instances of inotify, the frontends need at least 32;")
    without_frontends = build_plan(load_blueprint("inf2").blueprint)
    assert list(missing_watches(lambda wanted: wanted, without_frontends)) == []


def test_a_used_port_names_the_model_that_cannot_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        [line] = used_ports(["a"], port)
        assert f"--port: got {port}, and a cannot listen on port {port} of 127.0.0.1" in line
        assert line.count(str(port)) == 2, "the library adds the address to the words of the system"
    assert list(used_ports(["a"], None)) == []
    [line] = used_ports(["a", "b"], 65535)
    assert "b cannot listen on port 65536" in line


def test_everything_that_is_missing_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = build_plan(load_blueprint("quickstart-g6e").blueprint)
    monkeypatch.setattr(run_requirements, "_free_memory", lambda: GIB)
    monkeypatch.setattr(run_requirements, "_watches", lambda wanted: wanted)
    monkeypatch.setattr(run_requirements, "_RUN_BYTES", 2**60)
    with pytest.raises(UserError) as error:
        check_machine(plan, tmp_path / "not" / "there", None)
    disk, memory = str(error.value).splitlines()
    assert "of free disk space" in disk
    assert "of free memory" in memory
    assert not (tmp_path / "not").exists()


def test_a_step_that_is_skipped_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference_local.java.java_programs.missing_tools", lambda: "mvn not found")
    assert list(skipped_steps(load_blueprint("real-time").blueprint)) == [
        "skipped here: the ad server: mvn not found"
    ]
    assert list(skipped_steps(load_blueprint("quickstart-g6e").blueprint)) == []


def test_a_door_without_api_keys_is_not_called_here() -> None:
    text = (blueprints_directory() / "front-door.yaml").read_text(encoding="utf-8")
    assert list(skipped_steps(parse_blueprint(text, "door.yaml").blueprint)) == []
    keys = "identity: {apiKeys: {maxDays: 90}}"
    issuer = "identity: {oidc: [{issuer: 'https://id.example.com', audience: a, keys: {keys: []}}]}"
    assert keys in text
    document = yaml.safe_load(text.replace(keys, issuer))
    (line,) = skipped_steps(Blueprint.model_validate(document))
    assert line.startswith("skipped here: calls through the front door: it admits no API keys")


def test_what_a_run_of_a_shared_pool_leaves_out_is_announced() -> None:
    """Red if a user takes the run for one of GPU health, or workers of other engines for ones that move."""
    text = yaml.safe_dump(document())
    shared = parse_blueprint(text, "shared.yaml").blueprint
    assert list(skipped_steps(shared)) == []
    (line,) = skipped_steps(shared, simulated=False)
    assert line.startswith("skipped here: the capacity shift: it moves simulated workers of EKS only")
    healthy = shared.model_copy(
        update={"spec": shared.spec.model_copy(update={"gpu_health": GpuHealth(action="observe")})}
    )
    (line,) = skipped_steps(healthy)
    assert line.startswith("skipped here: GPU health")
