"""Cron expressions, by the examples and limits of EventBridge's "Cron expressions reference"."""

from __future__ import annotations

import pytest

from inference_blueprints.spec.cron import cron_faults

# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-cron-expressions.html
ACCEPTED = (
    "0 10 * * ? *",
    "15 12 * * ? *",
    "0 18 ? * MON-FRI *",
    "0 8 1 * ? *",
    "0/10 * ? * MON-FRI *",
    "0/5 8-17 ? * MON-FRI *",
    "0/30 20-2 ? * MON-FRI *",
    "0 9 ? * 2#1 *",
    "0 9 ? * 6L 2025-2030",
    "0 9 L * ? *",
    "0 9 3W * ? *",
    "59 23 31 DEC ? 2199",
    "*/15 * 1,15 JAN,FEB,MAR ? *",
)


@pytest.mark.parametrize("expression", ACCEPTED)
def test_what_the_reference_shows_is_accepted(expression: str) -> None:
    assert list(cron_faults(expression)) == []


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("60 0 * * ? *", "minutes"),
        ("0-60 0 * * ? *", "minutes"),
        ("0/0 0 * * ? *", "minutes"),
        (", 0 * * ? *", "minutes"),
        ("0 24 * * ? *", "hours"),
        ("0 ? * * ? *", "hours"),
        ("0 0 0 * ? *", "day of month"),
        ("0 0 32W * ? *", "day of month"),
        ("0 0 5# * ? *", "day of month"),
        ("0 0 * 0 ? *", "month"),
        ("0 0 * JANUARY ? *", "month"),
        ("0 0 ? * 8 *", "day of week"),
        ("0 0 ? * MON#6 *", "day of week"),
        ("0 0 ? * 3W *", "day of week"),
        ("0 0 * * ? 1969", "year"),
    ],
)
def test_a_field_outside_of_its_values_is_named(expression: str, field: str) -> None:
    [fault] = cron_faults(expression)
    assert fault.startswith(f"{field} is ")


@pytest.mark.parametrize("expression", ["0 0 * * * *", "0 0 1 * MON *", "0 0 ? * ? *"])
def test_exactly_one_of_both_days_is_left_open(expression: str) -> None:
    [fault] = cron_faults(expression)
    assert fault.endswith("exactly one of them must be ?")
