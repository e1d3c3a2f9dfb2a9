"""docs/ecs.md has every section of a blueprint, and every reason that ``validate`` may give."""

from __future__ import annotations

import runpy

from inference_blueprints.render.ecs.ecs_limits import ECS_LIMITS
from inference_blueprints.resources import root
from inference_blueprints.spec.types import Spec

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_ecs_page.py"))
RESULTS = runpy.run_path(str(root() / "scripts" / "record_ecs_results.py"))
PAGE = SCRIPT["PAGE"].read_text(encoding="utf-8")


def test_every_section_has_a_row() -> None:
    assert set(SCRIPT["ROWS"]) == set(SCRIPT["section_keys"](Spec))


def test_every_limit_is_on_the_page() -> None:
    for limit in ECS_LIMITS:
        assert limit.reason in PAGE
        assert limit.instead in PAGE


def test_the_page_has_the_last_result_of_every_case_and_fault() -> None:
    tables = {name: [case for _, case in RESULTS["case_names"](name)] for name in RESULTS["TABLES"]}
    for table, names in {**tables, "faults": RESULTS["fault_names"]()}.items():
        assert len(names) > 5
        text = PAGE.partition(f"<!-- {table} -->")[2].partition(f"<!-- end of {table} -->")[0]
        for name in names:
            assert text.count(f"| {RESULTS['in_words'](name)} | ") == 1, "run: make test-ecs"
