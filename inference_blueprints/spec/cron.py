"""Grammar of cron expressions of EventBridge Scheduler, and of KEDA.

Source for EventBridge: "Cron expressions reference",
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-cron-expressions.html, and "Schedule types",
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html (2026-11-22). Source for KEDA:
``pkg/scalers/cron_scaler.go`` of KEDA 2.20.2, which parses five fields with robfig/cron 3 (``parser.go``,
``spec.go``): days of the week are 0-6, and a range may not end before it starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inference_blueprints.spec.wording import quote
from inference_contracts.records import dataclass

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_ELEMENT = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]+))?")


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the six fields."""

    name: str
    """Name in messages."""
    minimum: int
    maximum: int
    """`minimum`, `maximum`: Smallest and largest number."""
    words: tuple[str, ...] = ()
    """Words for the numbers, such as ``JAN`` for the smallest."""
    special: str = "(?!)"
    """Pattern of elements of this field only, such as ``L``. The group ``value`` is a number or word."""
    marks: str = ""
    """These elements in messages."""

    @property
    def allowed(self) -> str:
        words = f" or {self.words[0]}-{self.words[-1]}" if self.words else ""
        return f"{self.minimum}-{self.maximum}{words}, with * , - /{self.marks}"

    def accepts(self, text: str) -> bool:
        """Return whether a text is a list of elements that the field allows."""
        return all(self._accepts_element(element) for element in text.split(","))

    def has_backward_range(self, text: str) -> bool:
        """Return whether a range of an accepted text ends before it starts."""
        ranges = (_ELEMENT.fullmatch(element) for element in text.split(","))
        return any(
            self._number(match["first"]) > self._number(match["last"])
            for match in ranges
            if match and match["first"] and match["last"]
        )

    def _number(self, value: str) -> int:
        return self.minimum + self.words.index(value) if value in self.words else int(value)

    def _accepts_element(self, element: str) -> bool:
        special = re.fullmatch(self.special, element)
        if special:
            value = special.groupdict().get("value")
            return value is None or self._accepts_value(value)
        match = _ELEMENT.fullmatch(element)
        if match is None:
            return False
        values = [value for value in (match["first"], match["last"]) if value is not None]
        step = match["step"]
        return all(map(self._accepts_value, values)) and (step is None or 1 <= int(step) <= self.maximum)

    def _accepts_value(self, value: str) -> bool:
        return value in self.words or (value.isdecimal() and self.minimum <= int(value) <= self.maximum)


_DAY_OF_MONTH = _Field(
    "day of month", 1, 31, special=r"L|LW|L-[0-9]{1,2}|(?P<value>[0-9]{1,2})W", marks=" ? L W"
)
_DAY_OF_WEEK = _Field("day of week", 1, 7, _WEEKDAYS, r"L|(?P<value>\w+?)(?:L|#[1-5])", " ? L #")
_FIELDS = (
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _DAY_OF_MONTH,
    _Field("month", 1, 12, _MONTHS),
    _DAY_OF_WEEK,
    _Field("year", 1970, 2199),
)


# In KEDA's fields ``?`` stands for ``*``.
_KEDA_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31, special=r"\?", marks=" ?"),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _WEEKDAYS, r"\?", " ?"),
)


def keda_cron_faults(expression: str) -> Iterator[str]:
    """Yield what KEDA would refuse in a cron expression that has five fields."""
    for field, text in zip(_KEDA_FIELDS, expression.split(" "), strict=True):
        if not field.accepts(text):
            yield f"{field.name} is {quote(text)}, allowed is {field.allowed}"
        elif field.has_backward_range(text):
            yield f"{field.name} is {quote(text)}, a range must not end before it starts"


def cron_faults(expression: str) -> Iterator[str]:
    """Yield what EventBridge would refuse in a cron expression that has six fields."""
    texts = dict(zip(_FIELDS, expression.split(" "), strict=True))
    for field, text in texts.items():
        is_open = text == "?" and field in (_DAY_OF_MONTH, _DAY_OF_WEEK)
        if not is_open and not field.accepts(text):
            yield f"{field.name} is {quote(text)}, allowed is {field.allowed}"
    if texts[_DAY_OF_WEEK].count("#") and "," in texts[_DAY_OF_WEEK]:
        yield f"day of week is {quote(texts[_DAY_OF_WEEK])}, with # it takes one day only"
    if [texts[_DAY_OF_MONTH], texts[_DAY_OF_WEEK]].count("?") != 1:
        yield "day of month and day of week: exactly one of them must be ?"
