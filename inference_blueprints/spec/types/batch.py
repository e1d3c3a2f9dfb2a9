"""Batch: who may submit jobs, where they wait, and which come by themselves."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import (
    ArgumentValue,
    CronExpression,
    Name,
    PrincipalArn,
    S3Folder,
    S3Object,
    Section,
    default,
)


class Team(Section):
    """Those who submit jobs under one name and pay for them together."""

    name: Name
    """Name of the team; part of keys in S3, and a dimension of its metrics."""
    principals: list[PrincipalArn] = Field(min_length=1, max_length=50)
    """ARNs of the IAM roles and users that are the team."""
    monthly_budget_usd: float = Field(gt=0.0, le=1_000_000_000.0)
    """What its jobs may cost in a calendar month, in dollars; stops admission, never a job that runs."""
    data_prefixes: list[S3Folder] = Field(default_factory=list, max_length=20)
    """Prefixes in S3 below which its inputs and images are read, such as `s3://bucket/folder/`."""


class Rates(Section):
    """What teams are charged; `blueprints plan` shows what the platform itself pays."""

    usd_per_million_input_tokens: float = Field(ge=0.0, le=1000.0)
    """Dollars for a million tokens of prompts."""
    usd_per_million_output_tokens: float = Field(ge=0.0, le=1000.0)
    """Dollars for a million tokens of answers."""


class BatchLoad(Section):
    """What a queue is to take in a day, for `blueprints plan` alone: it counts what that needs."""

    requests_per_day: int = Field(ge=1, le=10_000_000_000)
    """Requests of a day, each of the mean length of the model's workload."""
    # As many as OpenAI takes in one batch.
    requests_per_job: int = Field(default=50_000, ge=1, le=50_000_000)
    """Requests of a job, in the mean."""


class BatchQueue(Section):
    """Where jobs for one model wait."""

    name: Name
    """Name of the queue."""
    model: Name
    """Model that answers its jobs."""
    priority: int = Field(default=10, ge=0, le=100)
    """Of jobs that ask for none; higher goes first, and an hour of waiting weighs as much as one step."""
    deadline_hours: float = Field(default=24.0, gt=0.0, le=336.0)
    """Hours after which a job must be finished, at most."""
    rates: Rates
    """What its jobs cost."""
    load: BatchLoad | None = None
    """What it is to take in a day; without it `blueprints plan` checks no quotas of services for it."""


class PromptTemplate(Section):
    """How rows become requests."""

    text: str = Field(min_length=1, max_length=65_536)
    """A Jinja2 template of the prompt; fields of a row are its variables."""
    image_fields: list[str] = Field(default_factory=list, max_length=20)
    """Fields of a row that name images in S3, which go before the prompt."""
    parameters: dict[str, ArgumentValue] = Field(default_factory=dict, max_length=50)
    """What else a request's body holds, such as `max_tokens: 200`."""


class Manifest(Section):
    """What a job is to do."""

    inputs: list[S3Object] = Field(min_length=1, max_length=1000)
    """Objects that it reads, `.jsonl`, `.csv` or `.parquet`; `{date}` is the day of the schedule's time."""
    deadline_hours: float | None = Field(default=None, gt=0.0, le=336.0)
    """Hours until it must be finished; without it the queue's."""
    priority: int | None = Field(default=None, ge=0, le=100)
    """Higher goes first; without it the queue's."""
    budget_usd: float | None = Field(default=None, gt=0.0)
    """What it may cost, in dollars; without it the team's month."""
    skip_invalid: bool = False
    """Whether valid lines run although others are not."""
    template: PromptTemplate | None = None
    """How rows become requests; without it lines are requests."""
    signal: Name | None = None
    """Signal of the team that answers become, by their `custom_id`; without it they are in files alone."""


class BatchSchedule(Section):
    """A job that comes by itself."""

    name: Name
    """Name of the schedule."""
    queue: Name
    """Queue that it waits in."""
    team: Name
    """Team whose it is."""
    cron: CronExpression
    """When, in UTC: minutes, hours, day, month, weekday and year, such as `0 6 * * ? *`."""
    manifest: Manifest
    """What it is to do."""


class EksBatchWorkers(Section):
    """Workers as pods on the platform's own nodes, which KEDA starts and ends."""


class EcsBatchWorkers(Section):
    """Workers as tasks on AWS Fargate, which take no room on the cluster's nodes."""

    spot_percent: int = Field(default=75, ge=0, le=100)
    """Percent of the tasks on Fargate Spot, beside one that never is; AWS ends those in two minutes."""


class BatchWorkers(Section):
    """What runs the shards of each model that has queues: as many workers as shards wait for."""

    # None at all costs nothing, and the first shard after a rest waits for a worker to start.
    min: int = Field(default=1, ge=0, le=100)
    """Workers of a model that stay when there is nothing to do."""
    max: int = Field(default=4, ge=1, le=100)
    """Workers of a model at most; where it is `min`, nothing scales them."""
    latency_percent: int | None = Field(default=None, ge=0, le=1000)
    """Percent by which answers may take longer for their sake, without it 20; 0 where nobody else asks."""
    eks: EksBatchWorkers | None = None
    """Pods of the cluster; the way without a key."""
    ecs: EcsBatchWorkers | None = None
    """Tasks on AWS Fargate."""


class Batch(Section):
    """Jobs of many requests, which run on whatever capacity is free."""

    # Each model that has one gets workers of its own, of which one stack has room for these.
    queues: list[BatchQueue] = Field(min_length=1, max_length=15)
    """Where jobs wait."""
    schedules: list[BatchSchedule] = Field(default_factory=list, max_length=50)
    """Jobs that come by themselves."""
    workers: BatchWorkers = default({})
    """What runs them; without it one worker a model, and up to four as shards wait."""
