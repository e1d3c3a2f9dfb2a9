"""The table of suites names each with its last result."""

from __future__ import annotations

from write_suites_page import agents_text, page_text

PAGE = "# Testing\n\n<!-- suites -->\nold\n<!-- end of suites -->\n"
RESULT = {"passed": True, "minutes": 4.2, "repeated": [], "date": "2026-11-28", "commit": "abcdef12"}


def row(target: str, results: dict[str, object]) -> str:
    [found] = [
        line for line in page_text(PAGE, results).splitlines() if line.startswith(f"| `make {target}` |")
    ]
    return found


def test_a_suite_has_its_last_result_with_date_and_commit() -> None:
    assert row("test", {"test": RESULT}).endswith("| always | passed in 4.2 min; 2026-11-28, `abcdef12` |")
    failed = {**RESULT, "passed": False, "repeated": ["tests/local/test_run.py::test_one"]}
    assert "failed, 1 repeated in 4.2 min" in row("test", {"test": failed})


def test_a_suite_without_a_result_says_so() -> None:
    assert row("test-scaling", {}).endswith("| before a release | not recorded |")
    assert row("test-ecs", {}).endswith("| not recorded; [of each test](ecs.md) |")
    assert "old" not in page_text(PAGE, {})


def test_the_times_of_commands_are_those_of_the_last_results() -> None:
    """Times that were written by hand were wrong a day later."""
    page = agents_text("<!-- times -->\n<!-- end of times -->\n", {"test": RESULT})
    assert "| `make test` | 4.2 min | before every commit |" in page
    assert "| `make run` |  | after" in page
