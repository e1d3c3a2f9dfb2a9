"""A run directory has one owner at a time, and its death is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inference_blueprints.operate.signals import StoreAddress
from inference_contracts.errors import UserError
from inference_local import run_state
from inference_local.run_state import RunningBatch, RunningModel, RunningSignals, RunState
from inference_local.serving.local_endpoint import ServedProcess
from inference_local.serving.platform_parts import PlatformPart

#: It ends a test that hangs.
PATIENCE_SECONDS = 240.0
OWNER = """
import sys, time
from pathlib import Path
from inference_local.processes.interruption import Interrupted, interruptible
from inference_local.run_state import RunState, claim
import os
try:
    with interruptible(), claim(Path(sys.argv[1])) as right:
        right.publish(RunState(pid=os.getpid(), blueprint="b.yaml", phase="ready"))
        print("ready", flush=True)
        time.sleep(3600)
except Interrupted as interruption:
    sys.exit(interruption.exit_code)
"""


def start_owner(directory: Path) -> subprocess.Popen[str]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(directory)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    return owner


def test_nothing_runs_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert run_state.live_state(tmp_path / "none") is None
    assert run_state.stop(tmp_path / "none") is False


def test_what_is_published_is_read_back(tmp_path: Path) -> None:
    models = (RunningModel("m", "http://127.0.0.1:1/v1", 4096),)
    parts = (PlatformPart("router", "real", "Dynamo's own"),)
    batch = RunningBatch("http://127.0.0.1:2/v1", "b", "ads", "arn:aws:iam::1:role/Ads", {"AWS_REGION": "r"})
    address = StoreAddress("127.0.0.1", "3", "cache", "reader", "us-west-2", "/run/authority.crt")
    signals = RunningSignals(address, {"AWS_ACCESS_KEY_ID": "1"})
    processes = (ServedProcess("w 1", "m-main", "worker", "http://127.0.0.1:4", "/health", "/run/w.log"),)
    state = RunState(os.getpid(), "b.yaml", "ready", models, parts, batch, signals, processes=processes)
    state = replace(state, environment={"AWS_REGION": "r"})
    with run_state.claim(tmp_path) as right:
        assert run_state.live_state(tmp_path) is None
        right.publish(state)
        assert run_state.live_state(tmp_path) == state
    assert run_state.live_state(tmp_path) is None


def test_the_variables_of_a_run_lead_to_its_models_its_emulator_and_its_store() -> None:
    """A client that lacks one of them asks the real account, or another store."""
    address = StoreAddress("127.0.0.1", "3", "cache", "reader", "us-west-2", "/run/authority.crt")
    models = (RunningModel("m", "http://127.0.0.1:1/v1", 4096), RunningModel("n", "http://127.0.0.1:2/v1", 1))
    state = RunState(
        1,
        "b.yaml",
        models=models,
        signals=RunningSignals(address, {}),
        environment={"AWS_REGION": "us-west-2"},
    )
    assert state.variables() == {
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
        "OPENAI_API_KEY": "none",
        "AWS_REGION": "us-west-2",
        "SIGNALS_HOST": "127.0.0.1",
        "SIGNALS_PORT": "3",
        "SIGNALS_CACHE": "cache",
        "SIGNALS_USER": "reader",
        "SIGNALS_REGION": "us-west-2",
        "SIGNALS_AUTHORITY": "/run/authority.crt",
    }


def test_a_folder_that_cannot_be_written_is_an_error_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match=r"file/run: cannot hold a run: .*; choose another folder"),
        run_state.claim(tmp_path / "file" / "run"),
    ):
        pass


def test_a_second_run_in_the_same_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with run_state.claim(tmp_path) as right:
        right.publish(RunState(os.getpid(), "b.yaml"))
        with pytest.raises(UserError, match="another run is using this folder"), run_state.claim(tmp_path):
            pass
        assert run_state.live_state(tmp_path) is not None


def test_who_typed_make_run_is_told_no_option_of_a_command_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKELEVEL", "1")
    with run_state.claim(tmp_path), pytest.raises(UserError) as caught, run_state.claim(tmp_path):
        pass
    assert str(caught.value).endswith("end that `make run` with Ctrl-C in its terminal")
    assert "--run-directory" not in str(caught.value)


@pytest.mark.clock
def test_stop_ends_the_owner_and_waits_for_its_cleaning_up(tmp_path: Path) -> None:
    owner = start_owner(tmp_path)
    assert run_state.stop(tmp_path, PATIENCE_SECONDS) is True
    assert owner.wait(PATIENCE_SECONDS) == 128 + 15
    assert not (tmp_path / "state.json").exists()


@pytest.mark.clock
def test_a_killed_owner_leaves_no_live_state(tmp_path: Path) -> None:
    owner = start_owner(tmp_path)
    owner.kill()
    owner.wait(PATIENCE_SECONDS)
    assert (tmp_path / "state.json").exists()
    assert run_state.live_state(tmp_path) is None
    with run_state.claim(tmp_path):
        assert not (tmp_path / "state.json").exists()
