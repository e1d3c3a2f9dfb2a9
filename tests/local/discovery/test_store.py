"""What happens to streams when the discovery store of ECS is disturbed, on real etcd with simulated workers.

etcd runs with the arguments and the certificates of the stack, workers start by `task_start`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.resources import root
from inference_contracts.discovery_roles import SHARED_CLIENT
from inference_local.control_plane import artefacts, build
from inference_local.processes.child_processes import ProcessGroup, log_tail
from inference_local.serving.isolation import open_isolation, started_in
from tests.local.discovery import faults, platform
from tests.runtime.discovery_certificates.issuing import issue, secret

PATIENCE_SECONDS = 240.0


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of all disturbances of one platform."""
    folder = tmp_path_factory.mktemp("discovery")
    issued = issue(folder, platform.MEMBERS, clients=(SHARED_CLIENT, platform.NAMESPACE, platform.OTHER))
    assert issued.returncode == 0, issued.stderr
    secrets = {name: secret(folder, name) for name in ("members", "clients", "administrator")}
    (folder / "secrets.json").write_text(json.dumps(secrets))
    write_model_directory(catalog.model("Qwen/Qwen3-8B"), folder / "model")
    etcd = build.program(artefacts.ETCD, print) / artefacts.ETCD.name
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(root()), str(root() / "runtime")]),
    }
    with ProcessGroup() as processes:
        isolation = open_isolation(started_in(processes, folder / "network.log"))
        command = [sys.executable, "-m", faults.__name__, str(folder), str(etcd)]
        run = processes.start(
            "faults", isolation.command(command), environment=environment, log_path=folder / "faults.log"
        )
        assert run.popen.wait(PATIENCE_SECONDS) == 0, log_tail(folder / "faults.log")
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_the_first_member_of_a_new_store_lives_before_the_others_start(results: dict[str, Any]) -> None:
    assert results["first_member_alone"]["alive"] == 200


def test_workers_of_one_host_have_ports_of_their_own(results: dict[str, Any]) -> None:
    assert sorted(results["ports"].values()) == ["127.0.0.50:20000", "127.0.0.50:20032"]


@pytest.mark.parametrize("case", [case.__name__ for case in faults.CASES])
def test_no_stream_is_cut_and_no_process_ends(results: dict[str, Any], case: str) -> None:
    found = results[case]
    assert found["errors"] == []
    assert found["ended"] == []
    assert found["whole"] > 0


def test_frontends_are_alive_while_the_store_has_no_majority(results: dict[str, Any]) -> None:
    assert results["two_members_killed"]["alive"] == [200]


def test_members_live_and_processes_of_an_earlier_release_run_on_with_users_and_roles(
    results: dict[str, Any],
) -> None:
    """Without the shared client of earlier releases this is red: a deployment ends all workers."""
    found = results["roles_turned_on"]
    assert found["alive"] == [200] * len(platform.MEMBERS)
    assert f"new user {SHARED_CLIENT}" in found["roles"]
    assert "error" not in found["roles"]


def test_a_worker_registers_for_its_own_deployment_only(results: dict[str, Any]) -> None:
    """One certificate for all, or a role for all keys, turns this red."""
    found = results["worker_of_another_deployment"]
    assert "permission denied" in found["log"]
    assert found["workers"] == [2, 2]
