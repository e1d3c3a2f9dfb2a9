"""How alarms treat missing data: the tables of AWS's document, row by row.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
"""

from __future__ import annotations

import pytest

from inference_local.emulator.alarms.missing_data import TREATMENTS, decide, evaluation_range

RETAIN = None
#: Data points, number to fill, then the states for missing, ignore, breaching and notBreaching. 3 of 3 must
#: breach.
THREE_OF_THREE = [
    ("0 - X - X", 0, "OK", "OK", "OK", "OK"),
    ("0 - - - -", 2, "OK", "OK", "OK", "OK"),
    ("- - - - -", 3, "INSUFFICIENT_DATA", RETAIN, "ALARM", "OK"),
    ("0 X X - X", 0, "ALARM", "ALARM", "ALARM", "ALARM"),
    ("- - X - -", 2, "ALARM", RETAIN, "ALARM", "OK"),
]
#: The same with 2 of 3.
TWO_OF_THREE = [
    ("0 - X - X", 0, "ALARM", "ALARM", "ALARM", "ALARM"),
    ("0 0 X 0 X", 0, "ALARM", "ALARM", "ALARM", "ALARM"),
    ("0 - X - -", 1, "OK", "OK", "ALARM", "OK"),
    ("- - - - 0", 2, "OK", "OK", "ALARM", "OK"),
    ("- - - X -", 2, "ALARM", RETAIN, "ALARM", "OK"),
]
ROWS = [(3, *row) for row in THREE_OF_THREE] + [(2, *row) for row in TWO_OF_THREE]
COLUMNS = ("missing", "ignore", "breaching", "notBreaching")


def points(text: str) -> list[bool | None]:
    return [{"0": False, "X": True, "-": None}[each] for each in text.split()]


@pytest.mark.parametrize(
    ("to_alarm", "text", "filled", "missing", "ignore", "breaching", "not_breaching"), ROWS
)
def test_a_row_of_the_document(
    *, to_alarm: int, text: str, filled: int, missing: str, ignore: str, breaching: str, not_breaching: str
) -> None:
    found = [
        decide(points(text), evaluation_periods=3, datapoints_to_alarm=to_alarm, treatment=column)
        for column in COLUMNS
    ]
    assert [each.state for each in found] == [missing, ignore, breaching, not_breaching]
    assert {each.filled for each in found} == {filled}
    assert set(COLUMNS) == set(TREATMENTS)


def test_the_evaluation_range_of_the_document() -> None:
    assert evaluation_range(3) == 5


@pytest.mark.parametrize("text", ["- - - - X", "- - - X -"])
def test_an_alarm_is_not_raised_before_its_time(text: str) -> None:
    # "the alarm does not go immediately into ALARM state when the data is either `- - - - X` or `- - - X -`"
    found = decide(points(text), evaluation_periods=3, datapoints_to_alarm=3, treatment="missing")
    assert found.state is RETAIN


@pytest.mark.parametrize("text", ["- - - X 0", "- - X - 0"])
def test_a_false_alarm_that_the_document_avoids(text: str) -> None:
    found = decide(points(text), evaluation_periods=3, datapoints_to_alarm=3, treatment="missing")
    assert found.state == "OK"


def test_the_latest_real_points_decide() -> None:
    found = decide(points("X X 0 X -"), evaluation_periods=3, datapoints_to_alarm=3, treatment="breaching")
    assert (found.state, found.counted) == ("OK", (1, 2, 3))
