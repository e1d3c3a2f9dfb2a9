"""The page's table of exceptions is the one that workers get."""

from __future__ import annotations

import re
import runpy

import pytest

from inference_blueprints.resources import root
from inference_local.serving.vllm_cpu.installation import VLLM

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_engine_exceptions.py"))


def test_the_table_is_written_anew() -> None:
    places = ("installation", "exceptions", "architectures")
    page = "".join(f"<!-- {name} -->\nSTALE\n<!-- end of {name} -->\n" for name in places)
    written = SCRIPT["page_text"](page)
    assert "STALE" not in written
    assert "| `--load-format` | `dummy` |" in written


@pytest.mark.parametrize("page", ["README.md", "Makefile", "pyproject.toml"])
def test_other_pages_round_the_size_of_the_installation(page: str) -> None:
    text = (root() / page).read_text(encoding="utf-8")
    said = re.findall(r"install\w*(?: of)? (\d+) GB", text)
    assert said, "the page says what the first use installs"
    assert set(said) == {f"{VLLM.installed_bytes / 1e9:.0f}"}
