"""Numbers as people write them."""

from __future__ import annotations

import re

import pytest

from inference_blueprints.resources import root
from inference_contracts.number_text import number

#: Formats that turn 2,000 into ``2e+03``.
_FEW_DIGITS = re.compile(r":,?\.[1-9]g\}")
#: PromQL may have numbers in scientific notation.
_PROMQL = "recording_rules.py"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (2000.0, "2,000"),
        (1_000_000.0, "1,000,000"),
        (1234.5, "1,234"),
        (99.96, "100"),
        (0.821, "0.821"),
        (0.0000168, "0.0000168"),
        (-2500.0, "-2,500"),
        (12.0, "12"),
    ],
)
def test_a_number_is_written_in_full(value: float, text: str) -> None:
    assert number(value) == text


def test_no_message_has_a_format_that_writes_thousands_as_a_power() -> None:
    """`plan` said ``2e+03 of 2e+03 requests per second``."""
    found = [
        f"{path.relative_to(root())}: {match}"
        for folder in ("inference_blueprints", "local/inference_local")
        for path in sorted((root() / folder).rglob("*.py"))
        if path.name != _PROMQL
        for match in _FEW_DIGITS.findall(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "use inference_contracts.number_text.number"
