"""Rules on teams, queues, schedules and workers of batch."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from typing import Final

from inference_blueprints.spec.cron import cron_faults
from inference_blueprints.spec.formats import bucket_problem
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import duplicate_names, rule
from inference_blueprints.spec.types import Batch, BatchQueue, BatchSchedule, BatchWorkers, Spec, Team
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion
from inference_catalog import node_facts
from inference_contracts.batch_limits import MIN_DEADLINE_HOURS
from inference_contracts.errors import Finding
from inference_contracts.units import HOURS_PER_DAY, SECONDS_PER_DAY

# Rules on the batch bucket: what its policy can say, and when its objects expire.

#: Bytes of a bucket policy (https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html).
MAX_POLICY_BYTES: Final = 20 * 1024
# The lengths of names that nobody knows before the deployment are the longest that AWS allows.
_BUCKET_BYTES: Final = len("arn:aws-us-gov:s3:::") + 63
# Quotes and a comma.
_QUOTED: Final = 3
# The statements of one team without its prefixes and principals. They name the exempt roles of the platform.
_TEAM_BYTES: Final = 470
# The statements that do not belong to one team, without the list of all principals.
_COMMON_BYTES: Final = 1900
# A prefix is in the statement that allows and in the one that denies. A principal is also in a third one.
_PREFIX_COPIES: Final = 2
_PRINCIPAL_COPIES: Final = 3
#: First parts of the keys of `inference_contracts.batch_keys`.
RESERVED_NAMES: Final = ("jobs", "files", "uploads")


def policy_bytes(batch: Batch, teams: list[Team]) -> int:
    """Return the most bytes that the policy of the batch bucket may have.

    batch, teams: Queues, and the teams that submit jobs to them.
    """
    size = _COMMON_BYTES
    for team in teams:
        prefixes = (_BUCKET_BYTES + len(f"/{queue.name}/{team.name}/*") + _QUOTED for queue in batch.queues)
        principals = (len(arn) + _QUOTED for arn in team.principals)
        size += _TEAM_BYTES + _PREFIX_COPIES * sum(prefixes) + _PRINCIPAL_COPIES * sum(principals)
    return size


@rule
def teams_fit_a_policy(spec: Spec) -> Iterator[Finding]:
    """Check that one bucket policy can hold the permissions and denials of all teams."""
    batch, teams = spec.batch, [team for _, team in usable(spec.teams)]
    if batch is None or not teams:
        return
    size = policy_bytes(batch, teams)
    if size > MAX_POLICY_BYTES:
        principals = sum(len(team.principals) for team in teams)
        message = (
            f"got {len(teams)} teams with {principals} principals and {len(batch.queues)} queues, which "
            f"need a bucket policy of up to {size:,} bytes; S3 allows {MAX_POLICY_BYTES:,}: use fewer teams "
            "or queues, or roles that several people share"
        )
        yield Finding(("spec", "teams"), message)


@rule
def teams_are_of_use(spec: Spec) -> Iterator[Finding]:
    """Warn of teams on a platform that has neither a front door nor batch nor streaming."""
    if spec.teams and spec.batch is None and not spec.streaming and spec.front_door is None:
        message = (
            "teams and their budgets have no effect without 'frontDoor', 'batch' or 'streaming'; add one, or "
            "remove the teams"
        )
        yield Finding(("spec", "teams"), message, "warning")


@rule
def objects_outlive_jobs(spec: Spec) -> Iterator[Finding]:
    """Check that the objects of a job are kept until it has ended, and while it runs again after that."""
    if spec.batch is None:
        return
    longest = max((queue.deadline_hours for _, queue in usable(spec.batch.queues)), default=0.0)
    minimum = 2 * math.ceil(longest / HOURS_PER_DAY) + 1
    if spec.batch.keep_days < minimum:
        message = (
            f"got {spec.batch.keep_days}, a job of {longest:g} hours that is run again after its deadline "
            f"needs its objects for {minimum} days; raise it, or lower 'deadlineHours'"
        )
        yield Finding(("spec", "batch", "keepDays"), message)


@rule
def queue_is_not_a_prefix_of_the_platform(spec: Spec) -> Iterator[Finding]:
    """Check that no queue has the name of a prefix that the platform uses in the bucket."""
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        if queue.name in RESERVED_NAMES:
            message = (
                f"got {quote(queue.name)}, the platform keeps its own objects below "
                f"{', '.join(map(quote, RESERVED_NAMES))}; use another name"
            )
            yield Finding(("spec", "batch", "queues", index, "name"), message)


_PLACEHOLDER = "{date}"
_TEMPLATES = "inference_contracts.prompt_template"


@rule
def cron_is_accepted(spec: Spec) -> Iterator[Finding]:
    """Check that EventBridge Scheduler accepts the times of schedules."""
    for index, schedule in usable(spec.batch.schedules if spec.batch else ()):
        faults = "; ".join(cron_faults(schedule.cron))
        if faults:
            yield Finding((*_path(index), "cron"), f"got {quote(schedule.cron)}; {faults}")


@rule
def placeholders_are_known(spec: Spec) -> Iterator[Finding]:
    """Check that addresses of inputs contain no placeholder but the date, which is the only one replaced."""
    for path, address in _inputs(spec):
        for placeholder in re.findall(r"\{[^{}]*\}|[{}]", address.replace(_PLACEHOLDER, "")):
            message = (
                f"got {quote(placeholder)} in {quote(address)}, the only placeholder is '{_PLACEHOLDER}'"
            )
            yield Finding(path, message + suggestion(placeholder, [_PLACEHOLDER]))
            break


@rule
def addresses_stay_in_the_bucket(spec: Spec) -> Iterator[Finding]:
    """Check that no address has more `..` than folders before them: S3 refuses such keys."""
    # "Naming Amazon S3 objects", https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
    for path, address in (*_prefixes(spec), *_inputs(spec)):
        depth = 0
        for part in address.removeprefix("s3://").split("/")[1:]:
            depth += -1 if part == ".." else 1
            if depth < 0:
                message = f"got {quote(address)}, '..' leads out of the bucket and S3 refuses it; remove '..'"
                yield Finding(path, message)
                break


@rule
def buckets_are_general_purpose(spec: Spec) -> Iterator[Finding]:
    """Check that weights, data and inputs are in buckets that the platform's policies can name."""
    weights = (
        (("spec", "models", index, "weights", "s3"), model.weights.s3)
        for index, model in usable(spec.models)
        if model.weights.s3
    )
    for path, address in (*weights, *_prefixes(spec), *_inputs(spec)):
        if problem := bucket_problem(address):
            yield Finding(
                path, f"got {quote(address)}, {problem}; copy the objects to a general purpose bucket"
            )


@rule
def template_is_valid(spec: Spec) -> Iterator[Finding]:
    """Check that the template of a schedule has no syntax error and uses no forbidden feature."""
    for index, schedule in usable(spec.batch.schedules if spec.batch else ()):
        template = schedule.manifest.template
        if template is None:
            continue
        # Jinja2 takes a tenth of a second to import, and few blueprints have a template.
        fault = import_module(_TEMPLATES).template_fault(template.text)
        if fault:
            message = f"is not a template that batch can use: {fault}; correct it"
            yield Finding((*_path(index), "manifest", "template", "text"), message)


def _path(index: int) -> Path:
    return ("spec", "batch", "schedules", index)


def _inputs(spec: Spec) -> Iterator[tuple[Path, str]]:
    """Yield the addresses of inputs with their paths."""
    for index, schedule in usable(spec.batch.schedules if spec.batch else ()):
        for place, address in usable(schedule.manifest.inputs):
            yield (*_path(index), "manifest", "inputs", place), address


def _prefixes(spec: Spec) -> Iterator[tuple[Path, str]]:
    """Yield the prefixes of teams with their paths."""
    for index, team in usable(spec.teams):
        for place, address in usable(team.data_prefixes):
            yield ("spec", "teams", index, "dataPrefixes", place), address


@rule
def prefixes_are_literal(spec: Spec) -> Iterator[Finding]:
    """Warn of an asterisk in a prefix: inputs are compared with it letter by letter, and IAM is not.

    IAM: "IAM JSON policy elements: Resource", wildcards in resource ARNs.
    """
    for path, address in _prefixes(spec):
        if "*" in address:
            message = (
                f"got {quote(address)}: no input matches an asterisk that stands for other characters, but "
                "IAM reads it so, and batch jobs may read more than the team may name; write the whole prefix"
            )
            yield Finding(path, message, "warning")


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
def deadlines_are_the_queues(spec: Spec) -> Iterator[Finding]:
    """Check that a schedule gives its job no deadline that the queue refuses each time it runs."""
    longest = {queue.name: queue.deadline_hours for _, queue in usable(_queues(spec))}
    for index, schedule in usable(_schedules(spec)):
        hours, maximum = schedule.manifest.deadline_hours, longest.get(schedule.queue)
        if hours is None or maximum is None or MIN_DEADLINE_HOURS <= hours <= maximum:
            continue
        advice = "lower it, or raise the queue's deadlineHours" if hours > maximum else "raise it"
        message = (
            f"got {hours:.10g}, jobs of queue {quote(schedule.queue)} may have {MIN_DEADLINE_HOURS:g} to "
            f"{maximum:.10g} hours; {advice}"
        )
        yield Finding((*_path(index), "manifest", "deadlineHours"), message)


@rule
def budgets_are_the_teams(spec: Spec) -> Iterator[Finding]:
    """Check that the budget of a schedule's job is not above the month's of its team."""
    monthly = {team.name: team.monthly_budget_usd for _, team in usable(spec.teams)}
    for index, schedule in usable(_schedules(spec)):
        budget, maximum = schedule.manifest.budget_usd, monthly.get(schedule.team)
        if budget is not None and maximum is not None and budget > maximum:
            message = (
                f"got {budget:.10g}, jobs of team {quote(schedule.team)} may cost at most its "
                f"monthlyBudgetUsd of {maximum:.10g}; lower it, or raise the team's monthlyBudgetUsd"
            )
            yield Finding((*_path(index), "manifest", "budgetUsd"), message)


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
    if workers and not workers.ecs and models * workers.max > node_facts.BATCH_WORKERS:
        message = (
            f"got {workers.max} workers for each of {models} models, the system nodes have "
            f"room for {node_facts.BATCH_WORKERS} in all; lower it to "
            f"{node_facts.BATCH_WORKERS // models}, or run them on 'ecs'"
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
    peaks = {
        model.name: model.workload.peak_requests_per_second
        for _, model in usable(spec.models)
        if model.workload
    }
    declared: dict[str, int] = defaultdict(int)
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        # One with lengths of its own is not a part of the peak.
        if queue.load is None or queue.model not in peaks or queue.workload:
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
