"""Each shipped blueprint has a page, and what the page shows of its plan is current."""

from __future__ import annotations

import runpy

import pytest

from inference_blueprints.resources import root
from inference_blueprints.spec.source import shipped

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_blueprint_pages.py"))


def page(name: str) -> str:
    text: str = SCRIPT["page_path"](name).read_text(encoding="utf-8")
    return text


@pytest.mark.parametrize("name", shipped())
def test_a_page_says_what_a_blueprint_teaches_and_when_not_to_use_it(name: str) -> None:
    assert "\n## What it teaches\n" in page(name)
    assert "\n## When not to use it\n" in page(name)


def test_sizes_have_a_row_for_each_role() -> None:
    rows = [line for line in page("p5en-disaggregated").splitlines() if "qwen3-32b/main/" in line]
    assert rows[:3] == [
        "| qwen3-32b/main/frontend | system nodes | 2 | - | - | - | - | - | - |",
        "| qwen3-32b/main/prefill | h200: h200 | 12 | 1 | 61.0 | 60.0 | 256 | 245,888 | 64 |",
        "| qwen3-32b/main/decode | h200: h200 | 1 | 4 | 15.3 | 106.0 | 64 | 1,736,576 | 256 |",
    ]


def test_sizes_include_the_kv_cache_outside_the_devices() -> None:
    """A table whose title changes in the plan would be left out of the page without a word."""
    assert "10,121,984" in page("long-context-kv-cache")


def test_prices_have_a_date_and_a_source() -> None:
    assert "On-demand prices of us-east-1, 2026-07, from Karpenter" in page("quickstart-g6e")
    assert "On demand the used nodes would cost" in page("capacity-block-p5")
    assert "On demand the used nodes would cost" not in page("quickstart-g6e")
