"""The layout of the house: where packages may be, what no file may say."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.machinery import PathFinder

import pytest

from inference_blueprints.resources import root


def tracked_files() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=root(), capture_output=True, text=True, check=True)
    return [name for name in result.stdout.splitlines() if (root() / name).is_file()]


def test_constructs_holds_one_package_and_is_none_itself() -> None:
    # PyPI's `constructs` merges a folder of this name into itself; an `__init__.py` here kills aws-cdk-lib.
    entries = {path.name for path in (root() / "constructs").iterdir() if path.name != "__pycache__"}
    assert entries == {"examples", "inference_constructs", "LICENSE", "README.md", "pyproject.toml"}


def test_the_source_root_does_not_shadow_the_library_constructs() -> None:
    """Both roots are on the path of Python, as here, and the package of PyPI must still be found."""
    found = PathFinder.find_spec("constructs", [str(root()), str(root() / "constructs"), *sys.path])
    assert found is not None
    assert "site-packages" in (found.origin or "")


def test_no_file_names_a_registry_host_or_a_path_of_a_machine() -> None:
    # Assembled from parts, so that this file does not find itself.
    hosts = [
        "pypi" + ".org",
        "files.python" + "hosted.org",
        "registry." + "npmjs.org",
        "proxy." + "golang.org",
    ]
    pattern = re.compile("|".join([*map(re.escape, hosts), r"(?<![\w.])/(?:root|work|home/\w+)/"]))
    found = []
    for name in tracked_files():
        try:
            text = (root() / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{name}: {match.group()}" for match in pattern.finditer(text)]
    assert found == []


def test_the_root_holds_no_file_of_an_experiment() -> None:
    """Red when a blueprint or an output that somebody tried at the root is committed with a change."""
    files = {name for name in tracked_files() if "/" not in name and not name.startswith(".")}
    documents = {"AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"}
    locks = {"package-lock.json", "package.json", "pyproject.toml", "requirements.lock"}
    assert files == documents | locks | {"Makefile", "app.py", "cdk.json"}


def test_there_is_one_lock_file_a_language() -> None:
    locks = {name for name in tracked_files() if name.endswith((".lock", "-lock.json", "-lock.yaml"))}
    assert locks == {"requirements.lock", "package-lock.json"}


def test_every_locked_package_is_pinned_with_hashes() -> None:
    text = (root() / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    unpinned = [
        line for line in text.splitlines() if line and not re.match(r"[\w.-]+==\S+ .*--hash=sha256:", line)
    ]
    assert unpinned == []


def test_no_plugin_leaves_out_a_file_of_tests(pytestconfig: pytest.Config) -> None:
    # The package ai-dynamo brings plugins that leave out test_vllm_*.py and others without a word.
    tests = [root() / name for name in tracked_files() if re.search(r"^tests/.*/test_[^/]*\.py$", name)]
    assert tests
    left_out = [
        path
        for path in tests
        if pytestconfig.hook.pytest_ignore_collect(collection_path=path, config=pytestconfig)
    ]
    assert not left_out
