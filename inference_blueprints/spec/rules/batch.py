"""Rules on batch: somebody may submit jobs, nobody is two teams, and queues have models."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from inference_blueprints.catalog import system_nodes
from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.duplicate_names import duplicate_names
from inference_blueprints.spec.types import Batch, Team
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion

#: Of 20 KB of a bucket's policy, each prefix takes up to 170 bytes, each principal up to 100
#: (https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html).
MOST_PREFIXES = 60
MOST_PRINCIPALS = 60
_WORKERS = ("spec", "batch", "workers")


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
    for index, queue in enumerate(batch.queues):
        yield from _unknown("model", queue.model, model_names, ("spec", "batch", "queues", index, "model"))


def schedules_differ(batch: Batch) -> Iterator[Finding]:
    """Check that schedules have different names."""
    names: dict[Path, str] = {
        ("spec", "batch", "schedules", index, "name"): each.name for index, each in enumerate(batch.schedules)
    }
    yield from duplicate_names("schedule", names)


def schedule_has_queue_and_team(batch: Batch, teams: Mapping[int, Team]) -> Iterator[Finding]:
    """Check that a schedule's queue and team are the blueprint's."""
    queues = [queue.name for queue in batch.queues]
    names = [team.name for team in teams.values()]
    for index, schedule in enumerate(batch.schedules):
        path = ("spec", "batch", "schedules", index)
        yield from _unknown("queue", schedule.queue, queues, (*path, "queue"))
        if names:
            yield from _unknown("team", schedule.team, names, (*path, "team"))


def inputs_are_the_teams(batch: Batch, teams: Mapping[int, Team]) -> Iterator[Finding]:
    """Check that a schedule reads what its team may read."""
    prefixes = {team.name: team.data_prefixes for team in teams.values()}
    for index, schedule in enumerate(batch.schedules):
        allowed_prefixes = prefixes.get(schedule.team)
        if allowed_prefixes is None:
            continue
        for place, address in enumerate(schedule.manifest.inputs):
            if not any(address.startswith(prefix) for prefix in allowed_prefixes):
                message = (
                    f"got {quote(address)}, team {quote(schedule.team)} reads below "
                    f"{', '.join(allowed_prefixes) or 'nothing'}; add its prefix to the team's dataPrefixes"
                )
                path = ("spec", "batch", "schedules", index, "manifest", "inputs", place)
                yield Finding(path, message)


def rows_have_a_template(batch: Batch) -> Iterator[Finding]:
    """Check that a schedule that reads rows says how they become requests."""
    for index, schedule in enumerate(batch.schedules):
        if schedule.manifest.template:
            continue
        for place, address in enumerate(schedule.manifest.inputs):
            if not address.endswith(".jsonl"):
                path = ("spec", "batch", "schedules", index, "manifest", "inputs", place)
                message = f"got {quote(address)}, whose rows need a template; add manifest.template"
                yield Finding(path, message)


def manifests_fit_a_policy(batch: Batch, teams: Mapping[int, Team]) -> Iterator[Finding]:
    """Check that one bucket policy can say which team writes manifests where."""
    pairs = len(batch.queues) * len(teams)
    if pairs > MOST_PREFIXES:
        message = (
            f"got {len(batch.queues)} queues of {len(teams)} teams, which write manifests below {pairs} "
            f"prefixes; a bucket's policy has room for {MOST_PREFIXES}: use fewer queues or teams"
        )
        yield Finding(("spec", "batch", "queues"), message)
    principals = sum(len(team.principals) for team in teams.values())
    if principals > MOST_PRINCIPALS:
        message = (
            f"got {principals} principals in all teams, a bucket's policy has room for {MOST_PRINCIPALS}; "
            "use roles that several people take on"
        )
        yield Finding(("spec", "teams"), message)


def workers_run_in_one_place(batch: Batch) -> Iterator[Finding]:
    """Check that workers are pods or tasks, and not both."""
    if batch.workers.eks and batch.workers.ecs:
        yield Finding((*_WORKERS, "ecs"), "got 'eks' and 'ecs', expected one of them; remove the other")


def least_workers_are_within_the_most(batch: Batch) -> Iterator[Finding]:
    """Check that no more workers stay than there may be."""
    if batch.workers.min > batch.workers.max:
        message = f"got {batch.workers.min}, 'max' is {batch.workers.max}; lower it, or raise 'max'"
        yield Finding((*_WORKERS, "min"), message)


def workers_fit_the_nodes(batch: Batch) -> Iterator[Finding]:
    """Check that the platform's own nodes have room for the workers of every model."""
    models = len({queue.model for queue in batch.queues})
    most = models * batch.workers.max
    if not batch.workers.ecs and most > system_nodes.BATCH_WORKERS:
        message = (
            f"got {batch.workers.max} workers for each of {models} models, the platform's own nodes have "
            f"room for {system_nodes.BATCH_WORKERS} in all; lower it to "
            f"{system_nodes.BATCH_WORKERS // models}, or run them on 'ecs'"
        )
        yield Finding((*_WORKERS, "max"), message)


def _unknown(noun: str, name: str, names: Collection[str], path: Path) -> Iterator[Finding]:
    """Yield a finding for a name that nothing has."""
    known = list(dict.fromkeys(names))
    if name not in known:
        yield Finding(path, f"got {quote(name)}, {allowed(noun, known)}{suggestion(name, known)}")
