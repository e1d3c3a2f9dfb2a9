"""Rules on teams, queues, schedules and workers of batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import duplicate_names, rule
from inference_blueprints.spec.types import BatchQueue, BatchSchedule, BatchWorkers, Spec
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion
from inference_catalog import system_nodes
from inference_contracts.errors import Finding
from inference_contracts.units import SECONDS_PER_DAY

_WORKERS = ("spec", "batch", "workers")


@rule
def teams_differ(spec: Spec) -> Iterator[Finding]:
    """Check that teams have different names."""
    yield from duplicate_names(
        "team", {("spec", "teams", index, "name"): team.name for index, team in usable(spec.teams)}
    )


@rule
def principals_are_of_one_team(spec: Spec) -> Iterator[Finding]:
    """Check that no principal is in two teams; paths do not tell roles apart."""
    owners: dict[tuple[str, str], str] = {}
    for index, team in usable(spec.teams):
        for place, arn in usable(team.principals):
            account_and_kind, _, name = arn.rpartition("/")
            key = (account_and_kind.split("/")[0], name)
            owner = owners.setdefault(key, team.name)
            if owner != team.name:
                message = (
                    f"got {quote(arn)}, which belongs to team {quote(owner)}; a principal can belong to only "
                    "one team, remove it from the other"
                )
                yield Finding(("spec", "teams", index, "principals", place), message)


@rule
def batch_has_teams(spec: Spec) -> Iterator[Finding]:
    """Check that batch has a team that may submit jobs."""
    if spec.batch and not spec.teams:
        yield Finding(
            ("spec", "batch"), "there are no teams, so nobody may submit jobs; add a team to spec.teams"
        )


@rule
def queues_differ(spec: Spec) -> Iterator[Finding]:
    """Check that queues have different names."""
    names: dict[Path, str] = {
        ("spec", "batch", "queues", index, "name"): queue.name for index, queue in usable(_queues(spec))
    }
    yield from duplicate_names("queue", names)


@rule
def queue_has_a_model(spec: Spec) -> Iterator[Finding]:
    """Check that the model of a queue is one of the blueprint's."""
    model_names = [model.name for model in spec.models]
    for index, queue in usable(_queues(spec)):
        yield from _unknown("model", queue.model, model_names, ("spec", "batch", "queues", index, "model"))


@rule
def schedules_differ(spec: Spec) -> Iterator[Finding]:
    """Check that schedules have different names."""
    names: dict[Path, str] = {
        ("spec", "batch", "schedules", index, "name"): each.name for index, each in usable(_schedules(spec))
    }
    yield from duplicate_names("schedule", names)


@rule
def schedule_has_a_queue(spec: Spec) -> Iterator[Finding]:
    """Check that the queue of a schedule is one of the blueprint's."""
    names = [queue.name for queue in _queues(spec)]
    for index, schedule in usable(_schedules(spec)):
        path = ("spec", "batch", "schedules", index, "queue")
        yield from _unknown("queue", schedule.queue, names, path)


@rule
def schedule_has_a_team(spec: Spec) -> Iterator[Finding]:
    """Check that the team of a schedule is one of the blueprint's."""
    names = [team.name for team in spec.teams]
    for index, schedule in usable(_schedules(spec) if names else ()):
        path = ("spec", "batch", "schedules", index, "team")
        yield from _unknown("team", schedule.team, names, path)


@rule
def inputs_are_the_teams(spec: Spec) -> Iterator[Finding]:
    """Check that the inputs of a schedule are below the prefixes of its team."""
    prefixes = {team.name: team.data_prefixes for _, team in usable(spec.teams)}
    for index, schedule in usable(_schedules(spec)):
        allowed_prefixes = prefixes.get(schedule.team)
        if allowed_prefixes is None:
            continue
        for place, address in usable(schedule.manifest.inputs):
            if not any(address[: len(prefix)] == prefix for prefix in allowed_prefixes):
                message = (
                    f"got {quote(address)}, team {quote(schedule.team)} may read "
                    f"{', '.join(allowed_prefixes) or 'nothing'}; add its prefix to the team's dataPrefixes"
                )
                path = ("spec", "batch", "schedules", index, "manifest", "inputs", place)
                yield Finding(path, message)


@rule
def priorities_are_the_teams(spec: Spec) -> Iterator[Finding]:
    """Check that the priority of a schedule is not above the highest of its team."""
    highest = {team.name: team.max_priority for _, team in usable(spec.teams)}
    for index, schedule in usable(_schedules(spec)):
        priority, maximum = schedule.manifest.priority, highest.get(schedule.team)
        if priority is not None and maximum is not None and priority > maximum:
            message = (
                f"got {priority}, jobs of team {quote(schedule.team)} may have at most {maximum}; "
                f"lower it, or "
                "raise the team's maxPriority"
            )
            yield Finding(("spec", "batch", "schedules", index, "manifest", "priority"), message)


@rule
def rows_have_a_template(spec: Spec) -> Iterator[Finding]:
    """Check that a schedule that reads rows has a template for requests."""
    for index, schedule in usable(_schedules(spec)):
        if schedule.manifest.template:
            continue
        for place, address in usable(schedule.manifest.inputs):
            if not address.endswith(".jsonl"):
                path = ("spec", "batch", "schedules", index, "manifest", "inputs", place)
                message = (
                    f"got {quote(address)}, rows of this file need a template to become requests; add "
                    "manifest.template"
                )
                yield Finding(path, message)


@rule
def workers_run_in_one_place(spec: Spec) -> Iterator[Finding]:
    """Check that workers run either as pods or as tasks."""
    workers = _workers(spec)
    if workers and workers.eks and workers.ecs:
        yield Finding((*_WORKERS, "ecs"), "got 'eks' and 'ecs', expected one of them; remove one")


@rule
def minimum_workers_are_within_the_maximum(spec: Spec) -> Iterator[Finding]:
    """Check that the fewest workers are not more than the most workers."""
    workers = _workers(spec)
    if workers and workers.min > workers.max:
        message = f"got {workers.min}, 'max' is {workers.max}; lower it, or raise 'max'"
        yield Finding((*_WORKERS, "min"), message)


@rule
def workers_fit_the_nodes(spec: Spec) -> Iterator[Finding]:
    """Check that the system nodes have room for the workers of all models."""
    workers = _workers(spec)
    models = len({queue.model for queue in _queues(spec)})
    if workers and not workers.ecs and models * workers.max > system_nodes.BATCH_WORKERS:
        message = (
            f"got {workers.max} workers for each of {models} models, the system nodes have "
            f"room for {system_nodes.BATCH_WORKERS} in all; lower it to "
            f"{system_nodes.BATCH_WORKERS // models}, or run them on 'ecs'"
        )
        yield Finding((*_WORKERS, "max"), message)


def _queues(spec: Spec) -> Sequence[BatchQueue]:
    """Return the queues; none without batch."""
    return spec.batch.queues if spec.batch else ()


def _schedules(spec: Spec) -> Sequence[BatchSchedule]:
    """Return the schedules; none without batch."""
    return spec.batch.schedules if spec.batch else ()


def _workers(spec: Spec) -> BatchWorkers | None:
    """Return the section of batch workers; None without batch."""
    return spec.batch.workers if spec.batch else None


def _unknown(noun: str, name: str, names: Collection[str], path: Path) -> Iterator[Finding]:
    """Yield a finding for a name that nothing has."""
    known = list(dict.fromkeys(names))
    if name not in known:
        yield Finding(path, f"got {quote(name)}, {allowed(noun, known)}{suggestion(name, known)}")


@rule
def load_is_within_the_peak(spec: Spec) -> Iterator[Finding]:
    """Check that the daily load of a model is at most its peak rate over 24 hours."""
    peaks = {model.name: model.workload.peak_requests_per_second for _, model in usable(spec.models)}
    declared: dict[str, int] = defaultdict(int)
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        if queue.load is None or queue.model not in peaks:
            continue
        declared[queue.model] += queue.load.requests_per_day
        maximum = int(peaks[queue.model] * SECONDS_PER_DAY)
        if declared[queue.model] > maximum:
            message = (
                f"got {declared[queue.model]:,} requests per day for model {quote(queue.model)}, but at its "
                f"peakRequestsPerSecond of {peaks[queue.model]:,.10g} it can answer {maximum:,}; raise the "
                "peak, or lower the load"
            )
            path = ("spec", "batch", "queues", index, "load", "requestsPerDay")
            yield Finding(path, message)
