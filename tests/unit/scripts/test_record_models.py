"""The recorder of models: a file of a public repository at a commit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from record_models import committed_file


def git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    command = ["git", "-C", str(folder), *own, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a repository with two commits of one file."""
    git(tmp_path, "init", "--quiet")
    for layers in (2, 3):
        (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": layers}), encoding="utf-8")
        git(tmp_path, "add", "config.json")
        git(tmp_path, "commit", "--quiet", "--message", f"{layers} layers")
    return tmp_path


def test_a_file_is_read_at_the_commit_and_not_from_the_work_tree(clone: Path) -> None:
    (clone / "config.json").write_text("{}", encoding="utf-8")
    newest, before = git(clone, "rev-parse", "HEAD"), git(clone, "rev-parse", "HEAD~1")
    assert committed_file(clone, "HEAD", "config.json") == (newest, {"num_hidden_layers": 3})
    assert committed_file(clone, before[:10], "config.json") == (before, {"num_hidden_layers": 2})


def test_an_unknown_commit_is_an_error(clone: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        committed_file(clone, "v9", "config.json")
