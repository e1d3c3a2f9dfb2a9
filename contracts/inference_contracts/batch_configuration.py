"""Queues, teams and signals of batch: one JSON document, which the stack writes and the functions read.

.. code-block:: json

   {"platform": "chat",
    "queues": [{"name": "nightly", "model": "qwen3-8b", "priority": 10, "deadlineHours": 24,
                "capacity": {"inputTokensPerSecond": 40000, "outputTokensPerSecond": 8000,
                             "usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4},
                "limits": {"lines": 1000000}}],
    "teams": [{"name": "search", "principals": ["arn:aws:iam::111122223333:role/Search"],
               "monthlyBudgetUsd": 1000, "dataPrefixes": ["s3://search-data/prompts/"]}],
    "signals": [{"name": "product-captions", "team": "search", "ttlHours": 72}]}

Signals may be omitted if answers go only to files.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from inference_contracts import principals
from inference_contracts.batch_body_fields import BODY_FIELDS, IMAGES_PATH
from inference_contracts.json_record import OPTIONAL, JsonRecord
from inference_contracts.request_limits import RequestLimits

_IMAGES: Final = (IMAGES_PATH,)
_TEXT: Final = tuple(path for path in BODY_FIELDS if path != IMAGES_PATH)


class ConfigurationError(Exception):
    """An invalid document. One message names all problems."""


@dataclass(frozen=True, slots=True)
class JobLimits(JsonRecord):
    """Limits of a job, checked before any money is spent."""

    line_bytes: int = field(default=8 * 2**20, metadata=OPTIONAL)
    """Largest size of a line, in bytes."""
    lines: int = field(default=50_000_000, metadata=OPTIONAL)
    """Largest number of lines over all inputs."""
    request_tokens: int = 131_072
    """Most tokens of one request, input and output together: the model's limit."""


@dataclass(frozen=True, slots=True)
class Capacity(JsonRecord):
    """Planned throughput and prices of a queue's model. All figures are estimates."""

    input_tokens_per_second: float
    output_tokens_per_second: float
    """`input_tokens_per_second`, `output_tokens_per_second`: Rates of all workers that the queue may use,
    each without load of the other kind. The first is 0 if prompts take no time that counts, as for images."""
    usd_per_million_input_tokens: float
    usd_per_million_output_tokens: float
    """`usd_per_million_input_tokens`, `usd_per_million_output_tokens`: Price of a million tokens, in
    dollars."""
    places: int = 1
    """Shards that those workers run at the same time."""

    def seconds(self, input_tokens: int, output_tokens: int) -> float:
        """Return the time that these tokens take."""
        reading = input_tokens / self.input_tokens_per_second if self.input_tokens_per_second else 0.0
        return reading + output_tokens / self.output_tokens_per_second

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of these tokens, in dollars."""
        million = 1_000_000
        return (
            input_tokens * self.usd_per_million_input_tokens
            + output_tokens * self.usd_per_million_output_tokens
        ) / million


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(JsonRecord):
    """A queue of jobs for one model."""

    name: str
    model: str
    """The name under which the endpoint serves its model."""
    priority: int
    """Default priority of its jobs. Higher goes first."""
    deadline_hours: float
    """Longest deadline, in hours."""
    keep_days: int = 30
    """Days after which the results of a job are deleted."""
    capacity: Capacity
    """Throughput and prices of its model."""
    limits: JobLimits = field(default_factory=JobLimits)
    request_limits: Mapping[str, Any] | None = None
    """Limits of a request, beyond which it ends an engine or is compiled for minutes, as `RequestLimits`
    records them. None if the engine has none."""
    image_steps: int = field(default=0, metadata=OPTIONAL)
    """Steps of an image whose line names none; 0 if its model makes no images."""
    public_name: str = field(default="", metadata=OPTIONAL)
    """A second name of its model that lines may have; empty if there is none."""

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names of its model that lines may have."""
        return (self.model, self.public_name) if self.public_name else (self.model,)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """API paths that its jobs may have. The first is the default."""
        return _IMAGES if self.image_steps else _TEXT

    @property
    def longest_window(self) -> str:
        """The longest deadline of its jobs, as the API writes one, such as ``24h``."""
        return f"{self.deadline_hours:g}h"

    def allows(self, hours: float) -> bool:
        """Return whether a job may have so many hours."""
        return hours <= self.deadline_hours


@dataclass(frozen=True, slots=True)
class BatchTeam(JsonRecord):
    """A team that submits jobs."""

    name: str
    principals: tuple[str, ...]
    """ARNs of the team's roles and users."""
    monthly_budget_usd: float
    """Monthly cost limit of the team's jobs, in dollars."""
    max_priority: int = 100
    """Highest priority of its jobs."""
    max_places_percent: int = 100
    """Largest share of a model's places that its jobs hold, in percent."""
    data_prefixes: tuple[str, ...] = ()
    """Prefixes in S3, ``s3://bucket/prefix/``, that may contain inputs and images."""

    def max_places(self, places: int) -> int:
        """Return the number of a model's places that the team's jobs may hold; at least one."""
        return max(1, places * self.max_places_percent // 100)


@dataclass(frozen=True, slots=True)
class DeclaredSignal(JsonRecord):
    """A signal that the jobs of one team may write."""

    name: str
    team: str
    ttl_hours: float
    """Hours after which a value expires."""


@dataclass(frozen=True, slots=True)
class Configuration(JsonRecord):
    """The queues, teams and signals of a platform."""

    platform: str
    """The platform's name. A token is valid for one platform."""
    queues: tuple[Queue, ...]
    teams: tuple[BatchTeam, ...]
    signals: tuple[DeclaredSignal, ...] = field(default=(), metadata=OPTIONAL)
    limited_keys: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """Identifiers of the API keys that have budgets of their own at the front door."""

    def queue(self, name: str) -> Queue | None:
        """Return the queue of a name; None if there is none."""
        return next((queue for queue in self.queues if queue.name == name), None)

    def team(self, name: str) -> BatchTeam | None:
        """Return the team of a name; None if there is none."""
        return next((team for team in self.teams if team.name == name), None)

    @property
    def models(self) -> tuple[str, ...]:
        """Models that have a queue, each once."""
        return tuple(dict.fromkeys(queue.model for queue in self.queues))

    def shortest_deadline(self, model: str) -> float:
        """Return the shortest deadline of a model's jobs, in hours after submission."""
        return min(queue.deadline_hours for queue in self.queues if queue.model == model)

    def places(self, model: str) -> int:
        """Return the shards that a model's workers run at the same time; 0 if no queue has the model."""
        return max((queue.capacity.places for queue in self.queues if queue.model == model), default=0)

    def request_limits(self, model: str) -> RequestLimits | None:
        """Return the limits of a model's requests; None if no queue has any for the model."""
        records = (queue.request_limits for queue in self.queues if queue.model == model)
        record = next(records, None)
        return None if record is None else RequestLimits.from_record(record)

    def signals_of(self, team: str) -> dict[str, DeclaredSignal]:
        """Return the signals that a team's jobs may write, by name."""
        return {signal.name: signal for signal in self.signals if signal.team == team}

    def team_of(self, arn: str) -> BatchTeam | None:
        """Return the team of a caller; None if it has none.

        arn: ARN of a role, of a session of it, or of a user.
        """
        caller = principals.canonical(arn)
        if caller is None:
            return None
        return next(
            (team for team in self.teams if caller in map(principals.canonical, team.principals)), None
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read the document. Raises ConfigurationError if it is invalid."""
        try:
            found = cls.from_document(json.loads(text))
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"the queues and teams cannot be read: {error!r}") from error
        problems = _problems(found)
        if problems:
            raise ConfigurationError("; ".join(problems))
        return found


def _problems(configuration: Configuration) -> list[str]:
    """Return the problems of a document that has the right types."""
    problems = [
        f"{what} {name} is listed {number} times"
        for what, names in (
            ("queue", [queue.name for queue in configuration.queues]),
            ("team", [team.name for team in configuration.teams]),
            ("signal", [signal.name for signal in configuration.signals]),
        )
        for name, number in Counter(names).items()
        if number > 1
    ]
    if not configuration.queues:
        problems.append("there is no queue, must be at least one")
    owners: dict[str, list[str]] = {}
    for team in configuration.teams:
        for arn in team.principals:
            name = principals.canonical(arn)
            if name is None:
                problems.append(f"team {team.name}: {arn} is not {principals.ALLOWED}")
            else:
                owners.setdefault(name, []).append(team.name)
        problems += _prefix_problems(team)
    problems += [
        f"{arn} is in teams {' and '.join(teams)}" for arn, teams in owners.items() if len(teams) > 1
    ]
    return problems


def _prefix_problems(team: BatchTeam) -> Sequence[str]:
    """Return the invalid prefixes of a team."""
    return [
        f"team {team.name}: {prefix} is not s3://bucket/prefix/ with a slash at its end"
        for prefix in team.data_prefixes
        if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/(.+/)?", prefix)
    ]
