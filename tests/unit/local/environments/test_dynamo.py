"""Dynamo is used from where it is installed, and a run that needs it says what to do before it starts."""

from __future__ import annotations

import sys

import pytest

from inference_blueprints.loading import load_blueprint
from inference_contracts.errors import UserError
from inference_local.environments import dynamo
from inference_local.environments.dynamo import DYNAMO
from inference_local.serving.llama_cpp.llama_kind import LlamaKind
from inference_local.serving.simulated_kind import SimulatedKind
from tests.unit.local.environments.installing import FakeUv

ADVICE = "install it with: blueprints local prepare"


@pytest.fixture
def elsewhere(uv: FakeUv, monkeypatch: pytest.MonkeyPatch) -> FakeUv:
    """An environment without Dynamo, as `pip install inference-local` leaves it."""
    monkeypatch.setattr(dynamo, "replay_is_installed", lambda: False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return uv


def test_a_checkout_uses_its_own_and_installs_nothing(uv: FakeUv) -> None:
    assert dynamo.dynamo_python() == sys.executable
    assert str(dynamo.prepare_dynamo(print)) == sys.executable
    assert uv.calls == []


@pytest.mark.usefixtures("no_child_process")
def test_it_is_used_once_it_is_prepared(elsewhere: FakeUv) -> None:
    for use in (dynamo.dynamo_python, dynamo.provide_dynamo):
        with pytest.raises(UserError, match=ADVICE):
            use()
    lines: list[str] = []
    python = dynamo.prepare_dynamo(lines.append)
    assert lines[0].startswith("installing NVIDIA Dynamo 1.6.1: 0.4 GB on disk")
    assert dynamo.dynamo_python() == str(python) == str(DYNAMO.folder / "env/bin/python")
    before = [*sys.path]
    dynamo.provide_dynamo()
    assert sys.path == [*before, str(DYNAMO.packages)], "its packages come last: ours may be loaded"
    assert dynamo.prepare_dynamo(print) == python
    assert elsewhere.syncs() == 1


@pytest.mark.usefixtures("elsewhere")
def test_a_run_with_dynamo_is_refused_before_it_starts_and_one_without_is_not() -> None:
    with pytest.raises(UserError, match=ADVICE):
        SimulatedKind(load_blueprint("quickstart-g6e").blueprint).check()
    LlamaKind(load_blueprint("graviton-llama-cpp").blueprint).check()
