"""Objectives, compared with the plan's own figures."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from inference_blueprints.report.plan.cells import UNKNOWN
from inference_blueprints.report.plan.section import (
    Label,
    PlanBasis,
    PlanSection,
    PlanSummary,
    RecordedReplay,
    ShortLine,
)
from inference_blueprints.report.plan.sections.tokens import TOKEN_PRICES, TokenPrice
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.request_estimates import answer_time
from inference_blueprints.serving.performance import bound_ms
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.model_files import read_json
from inference_blueprints.spec.types import (
    EACH_TOKEN,
    FIRST_TOKEN,
    LATENCY_NAMES,
    Blueprint,
    LatencyKind,
    Model,
    judge,
)
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

_REPLAYS = ".replays.json"


def replays_path(blueprint: Path) -> Path:
    """Return the path of a blueprint's recorded replays: ``<blueprint>.replays.json`` next to it."""
    return blueprint.with_name(blueprint.stem + _REPLAYS)


def replayed_content(blueprint: Blueprint, model: Model) -> str:
    """Return the digest of all that a replay of a model may depend on: the file without its objectives."""
    spec = blueprint.spec.model_dump(mode="json", by_alias=True)
    for each in spec["models"]:
        del each["objectives"], each["realTime"]
    return hashlib.sha256(json.dumps([model.name, spec], sort_keys=True).encode()).hexdigest()


class _Replay(BaseModel):
    """A replay as the file has it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    content: str
    date: str
    trace: str
    latencies_ms: dict[LatencyKind, dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]]] = Field(
        alias="latenciesMs"
    )

    @field_validator("latencies_ms")
    @classmethod
    def _is_complete(cls, value: dict[LatencyKind, dict[str, float]]) -> dict[LatencyKind, dict[str, float]]:
        for kind in LATENCY_NAMES:
            if _LONGEST not in value.get(kind, {}):
                raise ValueError(f"has no '{kind}' with the longest request, {_LONGEST!r}")
            if wrong := [name for name in value[kind] if not re.fullmatch(r"\d{1,3}(\.\d{1,9})?", name)]:
                raise ValueError(f"got {wrong[0][:40]!r} in '{kind}', which is no percentile")
        return value

    def recorded(self) -> RecordedReplay:
        latencies = {
            kind: {float(name): each for name, each in values.items()}
            for kind, values in self.latencies_ms.items()
        }
        return RecordedReplay(self.content, self.date, self.trace, latencies)


#: Percentile of the longest request.
_LONGEST = "100"
_REPLAYS_FILE = TypeAdapter(dict[str, _Replay])


def deployment_name(model: Model, deployment: str) -> str:
    """Return the name of a deployment in the record of replays, such as ``chat/main``."""
    return f"{model.name}/{deployment}"


def read_replays(path: Path) -> Mapping[str, RecordedReplay]:
    """Read the recorded replays of a blueprint, by `deployment_name`; none if there is no file.

    Raises UserError if the file cannot be read, or has another format.
    """
    if not path.exists():
        return {}
    remedy = "remove it, then write it with `blueprints tune FILE --as-written`"
    try:
        found = _REPLAYS_FILE.validate_python(read_json(path))
    except UserError as error:
        raise UserError(f"{error}; {remedy}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))[:200]
        message = first["msg"].removeprefix("Value error, ")
        raise UserError(
            f"{path}: is no record of replays: {where and where + ': '}{message}; {remedy}"
        ) from error
    return {name: each.recorded() for name, each in found.items()}


def write_replays(path: Path, replays: Mapping[str, RecordedReplay]) -> None:
    """Write replays beside those of other deployments.

    path: The file, as `replays_path` returns it.
    replays: By `deployment_name`.
    Raises UserError if it cannot be read or written.
    """
    document = {
        name: {
            "content": each.content,
            "date": each.date,
            "trace": each.trace,
            "latenciesMs": {
                kind: {f"{percentile:g}": value for percentile, value in values.items()}
                for kind, values in each.latencies_ms.items()
            },
        }
        for name, each in sorted({**read_replays(path), **replays}.items())
    }
    try:
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written: {error.strerror}; copy the blueprint elsewhere"
        ) from error


#: Without a replay, a plan never says that an objective is met.
_VERDICTS = {True: "met", False: "missed", None: "not replayed"}
#: The stated peak is that of the busiest minute.
_MINUTE_SECONDS = 60.0
_MS = 1000.0
#: A replay's 90th percentile of the time per output token was up to 5 % below the plan's mean for the shipped
#: blueprints at half of their peak to 1.6 times it.
_REPLAYS_DIFFER = 1.1


@dataclass(frozen=True, slots=True)
class ObjectiveCheck:
    """One latency objective of a model, and what the plan expects of a deployment."""

    model: str
    deployment: str
    objective: str
    """Key of the objective in the blueprint, such as ``requestMs.p99``. ``deadlineMillis`` is that of
    `realTime`, for the whole answer."""
    objective_ms: float
    """The objective, in milliseconds."""
    planned_ms: float | None
    """Least possible figure (simulated), in milliseconds; None without a latency profile. For the first
    token: a mean prompt that does not wait. For each output token: the mean at the stated peak, or that of
    one request alone if the workers do not serve the peak. For the deadline: a mean answer with both."""
    queued_ms: float
    """Wait for the first token at this percentile of the busiest minute, in milliseconds, because requests
    arrive faster than the workers answer them; 0 if the workers keep up."""
    name: str
    """What the objective is about, such as ``whole request p99``."""
    percentile: float
    """The percentile of the requests that the objective limits."""
    bound_ms: float | None
    """The bound: the latency of one mean request alone (simulated), in milliseconds. None without a latency
    profile."""
    replayed_ms: float | None = None
    """The percentile in the recorded replay (simulated), in milliseconds. None if the file as it is now was
    not replayed."""
    replayed_on: str | None = None
    replayed_trace: str | None = None
    """`replayed_on`, `replayed_trace`: Day and trace of the recorded replay, even if it is out of date."""

    @property
    def is_met(self) -> bool | None:
        """Whether a recorded replay meets the objective. None if there is none.

        Answers of one token meet each objective for the time between tokens.
        """
        if self.planned_ms == 0.0 and self.name.startswith(LATENCY_NAMES[EACH_TOKEN]):
            return True
        return None if self.replayed_ms is None else self.replayed_ms <= self.objective_ms

    @property
    def is_missed(self) -> bool | None:
        """True if the plan's own figures are above the objective; else None: only a replay shows it."""
        if self.planned_ms is None:
            return None
        margin = 1.0 if self.name.startswith(LATENCY_NAMES[FIRST_TOKEN]) else _REPLAYS_DIFFER
        return self.planned_ms + self.queued_ms > self.objective_ms * margin or None


def _checks(basis: PlanBasis) -> Iterator[ObjectiveCheck]:
    """Yield the objectives of each deployment at which somebody waits, with the plan's figures."""
    prices = {(price.model, price.deployment): price for price in basis[TOKEN_PRICES]}
    for roles in basis.deployments.values():
        model = roles[0].model
        if not roles[0].traffic.is_waited_for:
            continue
        price = prices.get((model.name, roles[0].deployment.name))
        replay = basis.replays.get(deployment_name(model, roles[0].deployment.name))
        is_current = replay is not None and replay.content == replayed_content(basis.blueprint, model)
        for judged in judge(model.stated_objectives, partial(_bound, roles)):
            wanted = judged.objective
            yield ObjectiveCheck(
                model=model.name,
                deployment=roles[0].deployment.name,
                objective=wanted.key,
                objective_ms=wanted.limit_ms,
                planned_ms=_planned_ms(roles, wanted.kind, price),
                queued_ms=0.0 if wanted.kind == EACH_TOKEN else _queued_ms(price, wanted.percentile),
                name=wanted.name,
                percentile=wanted.percentile,
                bound_ms=judged.value_ms,
                replayed_ms=(
                    replay.percentile_ms(wanted.kind, wanted.percentile) if replay and is_current else None
                ),
                replayed_on=replay.date if replay else None,
                replayed_trace=replay.trace if replay else None,
            )


def _bound(roles: tuple[ResolvedWorkers, ...], kind: LatencyKind, _percentile: float) -> float | None:
    """Return the bound of every percentile."""
    return bound_ms(roles, kind)


def _planned_ms(
    roles: tuple[ResolvedWorkers, ...], kind: LatencyKind, price: TokenPrice | None
) -> float | None:
    """Return a latency at the stated peak, without the queue; that of one request alone if it is not carried.

    Workers that are overloaded let requests wait, and have fewer at once than they could hold.
    """
    first = bound_ms(roles, FIRST_TOKEN)
    token = price.time_per_output_token_ms if price and price.carries_the_peak else None
    token = token or bound_ms(roles, EACH_TOKEN)
    if kind == FIRST_TOKEN:
        return first
    if kind == EACH_TOKEN or first is None or token is None:
        return token if kind == EACH_TOKEN else None
    return answer_time(roles[0].traffic.means.output_tokens, first, token)


def _queued_ms(price: TokenPrice | None, percentile: float) -> float:
    """Return how long a request waits at this percentile of the busiest minute, if they arrive too fast."""
    if price is None or price.carries_the_peak:
        return 0.0
    behind = price.peak_requests_per_second / price.requests_per_second - 1.0
    return _MINUTE_SECONDS * percentile / 100.0 * behind * _MS


def objectives(summary: PlanSummary) -> TextTable:
    """Return the table of objectives, which has rows if a model states some."""
    return TextTable(
        "Objectives (simulated)",
        ("deployment", "objective"),
        ("wanted, ms", "alone, ms", "at the peak, ms", "replayed, ms", "result"),
        tuple(map(_row, summary[OBJECTIVES])),
        tuple(_notes(summary[OBJECTIVES])),
    )


def _row(check: ObjectiveCheck) -> tuple[str, ...]:
    return (
        f"{check.model}/{check.deployment}",
        check.name,
        f"{check.objective_ms:,g}",
        UNKNOWN if check.bound_ms is None else f"{check.bound_ms:,.1f}",
        UNKNOWN if check.planned_ms is None else f"{check.planned_ms + check.queued_ms:,.1f}",
        "-" if check.replayed_ms is None else f"{check.replayed_ms:,.1f}",
        _verdict(check),
    )


def _verdict(check: ObjectiveCheck) -> str:
    """Return what a replay shows; without one, what the plan's own figures show."""
    if check.is_met is not None:
        return "answers of one token" if check.replayed_ms is None else _VERDICTS[check.is_met]
    return UNKNOWN if check.planned_ms is None else _VERDICTS[False if check.is_missed else None]


def _notes(checks: Sequence[ObjectiveCheck]) -> Iterator[str]:
    yield (
        "From the model's latency profile. Alone: one mean request without any other, which no load makes "
        "faster; a whole request takes the first token and each further one. At the peak, at least: the mean "
        "time per output token; for the first token, a prompt that does not wait, and the queue of the "
        "busiest minute if the workers answer less than the peak; for a whole request, both. Under load, "
        "requests wait for each other, and high percentiles are longer. The plan does not replay requests: "
        "`blueprints tune FILE --as-written` does, and records what the plan then shows."
    )
    recorded = {f"{each.model}/{each.deployment}": each for each in checks if each.replayed_on}
    for name, each in recorded.items():
        changed = "" if each.replayed_ms is not None else "; the file has changed since, so it does not count"
        yield f"{name} was replayed on {each.replayed_on}, trace: {each.replayed_trace} (simulated){changed}."
    yield from _missed(checks)


def _missed(checks: Sequence[ObjectiveCheck]) -> Iterator[str]:
    """Yield a sentence for each objective that is missed."""
    for check in checks:
        if check.is_met is False and check.replayed_ms is not None:
            yield (
                f"{check.model}/{check.deployment} misses its {check.name}: {check.replayed_ms:,.1f} ms in "
                f"the replay of {check.replayed_on} (simulated), {check.objective_ms:,g} ms wanted."
            )
        elif check.is_missed and check.planned_ms is not None:
            queued = f", {check.queued_ms:,.0f} ms of it in a queue that grows" if check.queued_ms else ""
            planned_ms = check.planned_ms + check.queued_ms
            is_alone = check.bound_ms is not None and planned_ms <= check.bound_ms
            yield (
                f"{check.model}/{check.deployment} misses its {check.name}: {planned_ms:,.1f} ms "
                f"{'without any other request' if is_alone else 'planned'}{queued}, "
                f"{check.objective_ms:,g} ms wanted."
            )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield what is known of the objectives, and a warning for each that is missed."""
    checks = summary[OBJECTIVES]
    if not checks:
        yield Label.OBJECTIVES, "none stated"
        return
    missed = [check for check in checks if check.is_missed]
    replayed = [check for check in checks if check.replayed_ms is not None]
    parts = [f"{len(checks)} stated"]
    if replayed:
        days = ", ".join(sorted({f"{check.replayed_on}" for check in replayed}))
        met = sum(check.is_met is True for check in replayed)
        parts.append(f"{met} of {len(replayed)} met in the replay of {days} (simulated)")
    if missed:
        parts.append(f"{len(missed)} missed by the plan's own figures")
    if all(check.planned_ms is None for check in checks):
        parts.append("whether they are met is unknown without a latency profile")
    elif not replayed and len(missed) < len(checks):
        parts.append("not replayed: `blueprints tune` does")
    yield Label.OBJECTIVES, ", ".join(parts)
    for sentence in _missed(checks):
        yield Label.WARNINGS, sentence


OBJECTIVES = PlanSection(
    "objectives", lambda basis: tuple(_checks(basis)), _in_short, (objectives,), ("is_missed", "is_met")
)
