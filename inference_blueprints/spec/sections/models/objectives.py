"""Objectives of a model: their keys, one record for each, and how latencies are judged against them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, Self

from pydantic import Field
from pydantic.alias_generators import to_camel

from inference_blueprints.spec.section import Section
from inference_contracts.records import dataclass

#: What a latency is of, as the blueprint's keys say it.
LatencyKind = Literal["timeToFirstTokenMs", "timePerOutputTokenMs", "requestMs"]
LATENCY_NAMES: Final[dict[LatencyKind, str]] = {
    "timeToFirstTokenMs": "time to first token",
    "timePerOutputTokenMs": "time per output token",
    "requestMs": "whole request",
}
FIRST_TOKEN: Final = "timeToFirstTokenMs"  # noqa: S105 - a token of text
EACH_TOKEN: Final = "timePerOutputTokenMs"  # noqa: S105 - a token of text
WHOLE_REQUEST: Final = "requestMs"


@dataclass(frozen=True, slots=True)
class Objective:
    """A limit on one percentile of a latency."""

    kind: LatencyKind
    percentile: float
    """Percentile of the requests, above 0 and below 100."""
    limit_ms: float
    """Largest allowed value of the percentile, in milliseconds."""
    path: tuple[str, ...]
    """Where the blueprint states it: below `objectives`, or `realTime.deadlineMillis` of the model. Empty for
    an assumption."""

    @property
    def key(self) -> str:
        """Its key in the blueprint, such as ``requestMs.p99`` or ``deadlineMillis``."""
        return ".".join(self.path).removeprefix("realTime.") or f"{self.kind}.p{self.percentile:g}"

    @property
    def name(self) -> str:
        """What it is about, such as ``time to first token p90``."""
        is_deadline = self.path[:1] == ("realTime",)
        return f"{'deadline of real time' if is_deadline else LATENCY_NAMES[self.kind]} p{self.percentile:g}"

    def __lt__(self, other: Self) -> bool:
        kinds = list(LATENCY_NAMES)
        return (kinds.index(self.kind), self.percentile) < (kinds.index(other.kind), other.percentile)


class LatencyPercentiles(Section):
    """Limits on a latency by percentile, such as `{p50: 200, p99: 1000}`: the higher, the longer."""

    p50: float | None = Field(default=None, gt=0.0)
    """Limit for half of the requests (the median), in milliseconds: with 200, half take at most 200 ms."""
    p90: float | None = Field(default=None, gt=0.0)
    """Limit for 90 % of the requests, in milliseconds."""
    p95: float | None = Field(default=None, gt=0.0)
    """Limit for 95 % of the requests, in milliseconds."""
    p99: float | None = Field(default=None, gt=0.0)
    """Limit for 99 % of the requests, in milliseconds."""


class Objectives(Section):
    """Latency objectives of the deployments, each for one or more percentiles of the requests."""

    time_to_first_token_ms: LatencyPercentiles | None = None
    """Time to first token: from sending a request to the first token of its answer."""
    time_per_output_token_ms: LatencyPercentiles | None = None
    """Time per output token: the mean of a request, from its first token to its last."""
    request_ms: LatencyPercentiles | None = None
    """Whole request, from sending it to the last token of the answer."""
    time_to_first_token_p90_ms: float | None = Field(default=None, gt=0.0)
    """Short for `timeToFirstTokenMs: {p90: …}`."""
    time_per_output_token_p90_ms: float | None = Field(default=None, gt=0.0)
    """Short for `timePerOutputTokenMs: {p90: …}`."""

    @property
    def stated(self) -> tuple[Objective, ...]:
        """Each stated objective: by latency, then by percentile."""
        return tuple(sorted(self._stated()))

    def _stated(self) -> Iterator[Objective]:
        sections: dict[LatencyKind, LatencyPercentiles | None] = {
            "timeToFirstTokenMs": self.time_to_first_token_ms,
            "timePerOutputTokenMs": self.time_per_output_token_ms,
            "requestMs": self.request_ms,
        }
        for kind, section in sections.items():
            for name in LatencyPercentiles.model_fields:
                limit: float | None = None if section is None else getattr(section, name)
                if limit is not None:
                    yield Objective(kind, float(name[1:]), limit, (kind, name))
        short: dict[LatencyKind, str] = {
            "timeToFirstTokenMs": "time_to_first_token_p90_ms",
            "timePerOutputTokenMs": "time_per_output_token_p90_ms",
        }
        for kind, name in short.items():
            limit = getattr(self, name)
            if limit is not None:
                yield Objective(kind, 90.0, limit, (to_camel(name),))


def deadline_objective(deadline_ms: float, fallback_percent: float) -> Objective:
    """Return the objective of callers with a deadline: so many of the requests are whole within it.

    deadline_ms: How long a caller waits for the whole answer.
    fallback_percent: Largest share of calls that may be late, in percent.
    """
    return Objective(WHOLE_REQUEST, 100.0 - fallback_percent, deadline_ms, ("realTime", "deadlineMillis"))


@dataclass(frozen=True, slots=True)
class JudgedObjective:
    """An objective beside what was measured or simulated, or beside a bound."""

    objective: Objective
    value_ms: float | None
    """The percentile, in milliseconds. None if it is unknown."""

    @property
    def met(self) -> bool | None:
        """Whether the value is within the limit. None without a value."""
        return None if self.value_ms is None else self.value_ms <= self.objective.limit_ms

    @property
    def excess(self) -> float:
        """The value divided by the limit: above 1 if it is missed. Infinite without a value."""
        return float("inf") if self.value_ms is None else self.value_ms / self.objective.limit_ms


def next_percentile(known: Mapping[float, float], percentile: float) -> float:
    """Return a percentile; between two known ones, the higher of them, so that nothing looks faster.

    known: Values by percentile, the largest one by 100.
    """
    return known[min(each for each in known if each >= percentile)]


#: Returns a percentile of a latency in milliseconds; None if it is unknown.
PercentileOf = Callable[[LatencyKind, float], float | None]


def judge(objectives: Iterable[Objective], percentile_of: PercentileOf) -> tuple[JudgedObjective, ...]:
    """Compare objectives with the latencies of requests.

    percentile_of: The requests, or a bound that holds for each of them.
    """
    return tuple(JudgedObjective(each, percentile_of(each.kind, each.percentile)) for each in objectives)


def all_met(judged: Sequence[JudgedObjective]) -> bool | None:
    """Return whether all objectives are met. None if there is none, or if one has no value."""
    if not judged or any(each.met is None for each in judged):
        return None
    return all(each.met for each in judged)


def tightest_ms(objectives: Iterable[Objective], kind: LatencyKind) -> float | None:
    """Return the smallest limit on a latency: where a plan reckons with means, it takes this one.

    Returns: Milliseconds. None without an objective of this kind.
    """
    return min((each.limit_ms for each in objectives if each.kind == kind), default=None)


def tail_objective(objectives: Iterable[Objective], kind: LatencyKind) -> Objective | None:
    """Return the objective for a latency that one percentile has to stand for: the 90th, else the highest."""
    stated = sorted(each for each in objectives if each.kind == kind)
    nineties = [each for each in stated if each.percentile == 90.0]  # noqa: PLR2004 - the 90th
    return next(iter([*nineties, *reversed(stated)]), None)
