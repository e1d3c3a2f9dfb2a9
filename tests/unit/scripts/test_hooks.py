"""The checks before a commit and a push: .pre-commit-config.yaml."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from wheels import ROOT

_REPOSITORIES = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
HOOKS = [hook for repository in _REPOSITORIES for hook in repository["hooks"]]


def test_hooks_fetch_nothing() -> None:
    """A hook of another repository, or in an environment of its own, is downloaded at the first commit."""
    assert [repository["repo"] for repository in _REPOSITORIES] == ["local"]
    assert {hook["language"] for hook in HOOKS} == {"system"}


@pytest.mark.parametrize("hook", HOOKS, ids=[hook["id"] for hook in HOOKS])
def test_the_command_of_a_hook_exists(hook: dict[str, Any]) -> None:
    """A program or target that was renamed would fail every commit of a contributor."""
    program, *words = hook["entry"].split()
    if program == "make":
        assert re.search(rf"^{words[-1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    else:
        assert (ROOT / program).is_file()
