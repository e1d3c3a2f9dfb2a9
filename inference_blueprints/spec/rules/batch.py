"""Rules on batch: somebody may submit jobs, nobody is two teams, and queues have models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.duplicate_names import duplicate_names
from inference_blueprints.spec.types import Batch, Team
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion


def teams_differ(teams: Mapping[int, Team]) -> Iterator[Finding]:
    """Check that teams have different names."""
    yield from duplicate_names(
        "team", {("spec", "teams", index, "name"): team.name for index, team in teams.items()}
    )


def principals_are_of_one_team(teams: Mapping[int, Team]) -> Iterator[Finding]:
    """Check that nobody is two teams; paths do not tell roles apart, as sessions do not show them."""
    owners: dict[tuple[str, str], str] = {}
    for index, team in teams.items():
        for place, arn in enumerate(team.principals):
            account_and_kind, _, name = arn.rpartition("/")
            key = (account_and_kind.split("/")[0], name)
            owner = owners.setdefault(key, team.name)
            if owner != team.name:
                message = f"got {quote(arn)}, which is of team {quote(owner)}; a principal is of one team"
                yield Finding(("spec", "teams", index, "principals", place), message)


def batch_has_teams(batch: Batch, team_count: int) -> Iterator[Finding]:
    """Check that somebody may submit jobs."""
    if batch and not team_count:
        yield Finding(("spec", "batch"), "nobody may submit jobs; name those who may under spec.teams")


def queues_differ(batch: Batch) -> Iterator[Finding]:
    """Check that queues have different names."""
    names: dict[Path, str] = {
        ("spec", "batch", "queues", index, "name"): queue.name for index, queue in enumerate(batch.queues)
    }
    yield from duplicate_names("queue", names)


def queue_has_a_model(batch: Batch, model_names: Sequence[str]) -> Iterator[Finding]:
    """Check that the model of a queue is one of the blueprint's."""
    names = list(dict.fromkeys(model_names))
    for index, queue in enumerate(batch.queues):
        if queue.model not in names:
            message = f"got {quote(queue.model)}, {allowed('model', names)}{suggestion(queue.model, names)}"
            yield Finding(("spec", "batch", "queues", index, "model"), message)
