"""A cache of the test's own, and a machine with the stand-in for uv."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from inference_local.environments import environment
from tests.unit.local.environments.installing import HOST, FakeUv, InThisProcess


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeUv:
    folder = tmp_path / "fake"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_UV", str(folder))
    fake = FakeUv(folder)
    host = dataclasses.replace(HOST, uv=fake.program)
    monkeypatch.setattr(environment, "this_host", lambda _: host)
    return fake


@pytest.fixture
def no_child_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "ProcessGroup", InThisProcess)
