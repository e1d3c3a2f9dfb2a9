"""Filter patterns: the examples of AWS's document.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
"""

from __future__ import annotations

import json

import pytest

from inference_local.emulator.alarms.filter_pattern import parse_pattern

ERRORS = {
    400: "[ERROR 400] BAD REQUEST",
    401: "[ERROR 401] UNAUTHORIZED REQUEST",
    419: "[ERROR 419] MISSING ARGUMENTS",
    420: "[ERROR 420] INVALID ARGUMENTS",
    500: "[ERROR 500] INTERNAL SERVER ERROR",
}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("ERROR", {400, 401, 419, 420, 500}),
        ("error", set()),
        ("ERROR ARGUMENTS", {419, 420}),
        ("?UNAUTHORIZED ?ARGUMENTS", {401, 419, 420}),
        ("ERROR ?ARGUMENTS", {400, 401, 419, 420, 500}),
        ('"INTERNAL SERVER ERROR"', {500}),
        ("ERROR -ARGUMENTS", {400, 401, 500}),
        ("%4[02]0%", {400, 420}),
        ('" "', {400, 401, 419, 420, 500}),
        ("", {400, 401, 419, 420, 500}),
    ],
)
def test_terms(pattern: str, expected: set[int]) -> None:
    matches = parse_pattern(pattern)
    assert {code for code, message in ERRORS.items() if matches(message)} == expected


TRAIL = {
    "eventType": "UpdateTrail",
    "sourceIPAddress": "111.111.111.111",
    "arrayKey": ["value", "another value"],
    "objectList": [{"name": "a", "id": 1}, {"name": "b", "id": 2}],
    "SomeObject": None,
}
COMPOUND = {
    "user": {"id": 1, "email": "John.Stiles@example.com"},
    "users": [{"id": 2, "email": "John.Doe@example.com"}, {"id": 3, "email": "Jane.Doe@example.com"}],
    "actions": ["GET", "PUT", "DELETE"],
    "coordinates": [[0, 1, 2], [4, 5, 6], [7, 8, 9]],
}
NUMBERS = {"bandwidth": 80, "latency": 50, "errorCode": 400, "number": [0.001, 1000], "is": True, "a.b": "x"}


@pytest.mark.parametrize(
    ("pattern", "event", "expected"),
    [
        ('{ $.eventType = "UpdateTrail" }', TRAIL, True),
        ('{ $.eventType = "Update*" }', TRAIL, True),
        ('{ $.eventType != "UpdateTrail" }', TRAIL, False),
        ("{ $.sourceIPAddress != 123.123.* }", TRAIL, True),
        ("{ $.sourceIPAddress = 111.111.* }", TRAIL, True),
        ('{ $.arrayKey[0] = "value" }', TRAIL, True),
        ('{ $.arrayKey[2] = "value" }', TRAIL, False),
        ("{ $.objectList[1].id = 2 }", TRAIL, True),
        ("{ $.objectList[1].id = 1 }", TRAIL, False),
        ("{ $.objectList = * }", TRAIL, False),
        ("{ $.SomeObject IS NULL }", TRAIL, True),
        ("{ $.eventType IS NULL }", TRAIL, False),
        ("{ $.SomeOtherObject NOT EXISTS }", TRAIL, True),
        ("{ $.SomeObject NOT EXISTS }", TRAIL, False),
        ("{ $.SomeOtherObject != 1 }", TRAIL, False),
        ('{ $.eventType = "*" && $.sourceIPAddress != 123.123.* }', TRAIL, True),
        ('{ ($.user.id = 1) && ($.users[0].email = "John.Doe@example.com") }', COMPOUND, True),
        (
            '{ $.user.email = "John.Stiles@example.com" || $.coordinates[0][1] = "nonmatch" '
            '&& $.actions[2] = "nonmatch" }',
            COMPOUND,
            True,
        ),
        (
            '{ ($.user.email = "John.Stiles@example.com" || $.coordinates[0][1] = "nonmatch") '
            '&& $.actions[2] = "nonmatch" }',
            COMPOUND,
            False,
        ),
        ('{ ($.user.id = 2 && $.users[0].email = "nonmatch") || $.actions[2] = "GET" }', COMPOUND, False),
        ("{ $.bandwidth > 75 }", NUMBERS, True),
        ("{ $.latency < 50 }", NUMBERS, False),
        ("{ $.latency >= 50 }", NUMBERS, True),
        ("{ $.latency <= 5e1 }", NUMBERS, True),
        ("{ $.errorCode = 400}", NUMBERS, True),
        ("{ $.errorCode != 500 }", NUMBERS, True),
        ("{ $.number[0] = 1e-3 }", NUMBERS, True),
        ("{ $.number[1] != 1e+3 }", NUMBERS, False),
        ("{ $.is IS TRUE }", NUMBERS, True),
        ("{ $.is IS FALSE }", NUMBERS, False),
        ("{ $.errorCode = 4* }", NUMBERS, True),
        ("{ $.errorCode = %^4\\d+$% }", NUMBERS, True),
        ("{ $.['a.b'] = x }", NUMBERS, True),
        ("{ $.latency = * }", NUMBERS, True),
    ],
)
def test_json(pattern: str, event: object, *, expected: bool) -> None:
    assert bool(parse_pattern(pattern)(json.dumps(event))) == expected


def test_json_patterns_match_nothing_else() -> None:
    assert parse_pattern("{ $.latency NOT EXISTS }")("latency") is None


APACHE = '127.0.0.1 Prod frank [10/Oct/2000:13:25:15 -0700] "GET /index.html HTTP/1.0" 404 1534'


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("[ip, user, username, timestamp, request =*.html*, status_code = 4*, bytes]", True),
        ("[..., request =*.html*, status_code = 4*, bytes]", True),
        ("[ip, ..., status_code = 404, bytes]", True),
        (
            "[ip, user, name, timestamp, request =*.html*, status_code = 404 || status_code = 410, bytes]",
            True,
        ),
        ("[ip, user, username, timestamp, request, status_code = 5*, bytes]", False),
        ("[ip, server, username, timestamp, request, status_code, bytes > 1000]", True),
        ("[ip, server, username, timestamp, request, status_code, bytes > 2000]", False),
        ("[ip, server, username, timestamp, request, status_code, bytes, one_more]", False),
        ('[ip, server = "Prod", ...]', True),
    ],
)
def test_fields(pattern: str, *, expected: bool) -> None:
    assert bool(parse_pattern(pattern)(APACHE)) == expected


@pytest.mark.parametrize(
    ("pattern", "message", "expected"),
    [
        ("[w1=ERROR, w2]", "ERROR 401", True),
        ("[w1=ERROR, w2]", "INFO 401", False),
        ("[w1=ERROR || w1=WARNING, w2]", "WARNING low", True),
        ("[w1!=ERROR && w1!=WARNING, w2]", "WARNING low", False),
        ("[w1!=ERROR && w1!=WARNING, w2]", "INFO low", True),
    ],
)
def test_words_in_order(pattern: str, message: str, *, expected: bool) -> None:
    assert bool(parse_pattern(pattern)(message)) == expected


def test_the_extracted_values_of_the_document() -> None:
    found = parse_pattern("[ip, user, username, timestamp, request, status_code, bytes]")(APACHE)
    assert found is not None
    expected = {
        "$bytes": "1534",
        "$status_code": "404",
        "$request": "GET /index.html HTTP/1.0",
        "$timestamp": "10/Oct/2000:13:25:15 -0700",
        "$username": "frank",
        "$user": "Prod",
        "$ip": "127.0.0.1",
        "$7": "1534",
    }
    assert {name: found.look(name)[1] for name in expected} == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "{ $.a = }",
        "{ $.a = 1",
        "{ $.a > x }",
        "{ $.a IS 1 }",
        "[a, ..., ...]",
        "{ ($.a = 1 }",
        "{ $.a NOT 1 }",
    ],
)
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        parse_pattern(pattern)
