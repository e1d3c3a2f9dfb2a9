"""The page of reasons lists each reason that GPU health and the capacity shift can give, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from inference_blueprints.resources import root
from inference_decisions.capacity_shift.shift_answer import ShiftCode

PAGE = (root() / "docs" / "decision-reasons.md").read_text(encoding="utf-8")
#: Where calls have the code of a reason among their arguments.
PLACES = {"GuardAnswer": 1, "RepairStep": 2, "_replaced": 1, "Assessment": 1, "moved": 2}
#: What reasons that the code composes are on the page; nothing for the reason of another object.
COMPOSED: dict[str, tuple[str, ...]] = {
    "f'{evidence.kind}_{evidence.code}'": ("KIND_CODE",),
    "f'dcgm_{evidence.code}'": ("dcgm_CODE",),
    "f'{unit}_shift'": ("rack_shift", "pool_shift", "peers_shift"),
    "evidence.kind": ("slow_worker", "failing_worker"),
    "AWAY": ("away",),
    "REBOOTED": ("rebooted",),
    "answer.reason": (),
    "found.reason": (),
    "step.reason": (),
}


def listed(section: str) -> list[str]:
    """Return the codes in the first column of the tables of a section."""
    _, _, after = PAGE.partition(f"\n## {section}\n")
    rows = [line for line in after.split("\n## ")[0].splitlines() if line.startswith("| `")]
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 3, row
        assert all(cells), row
    return [match for row in rows for match in re.findall(r"^\| `(\w+)`", row)]


def reasons_of(file: Path) -> Iterator[str]:
    """Iterate over the reasons that a file of GPU health gives."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        place = PLACES.get(name)
        found = [] if place is None else node.args[place : place + 1]
        if name == "replace":
            found = [each.value for each in node.keywords if each.arg == "reason"]
        for each in found:
            if isinstance(each, ast.Constant):
                yield str(each.value)
            elif ast.unparse(each) != "reason":
                yield from COMPOSED[ast.unparse(each)]


def test_the_page_lists_each_reason_of_gpu_health_once() -> None:
    folders = (root() / "runtime" / "inference_decisions" / "repairs", root() / "runtime" / "gpu_health")
    given = {reason for folder in folders for file in folder.glob("*.py") for reason in reasons_of(file)}
    assert {"frozen", "serves", "read_from_mark"} <= given
    assert sorted(listed("GPU health")) == sorted(given)


def test_the_page_lists_each_reason_of_the_capacity_shift_once() -> None:
    assert sorted(listed("Capacity shift")) == sorted(get_args(ShiftCode))
