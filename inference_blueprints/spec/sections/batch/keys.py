"""Batch: teams, queues, workers and scheduled jobs."""

from pydantic import Field

from inference_blueprints.spec.section import (
    ArgumentValue,
    CronExpression,
    Name,
    PrincipalArn,
    S3Folder,
    S3Object,
    Section,
    default,
)
from inference_blueprints.spec.sections.models.rates import Rates
from inference_blueprints.spec.sections.workloads.keys import RequestLengths


class Team(Section):
    """People and programs that submit jobs together and share a budget."""

    name: Name
    """Name of the team. It is part of S3 keys and a dimension of metrics."""
    principals: list[PrincipalArn] = Field(default_factory=list, max_length=50)
    """ARNs of the IAM roles and users that belong to the team. Required with batch, with a signal store, and
    with `identity.iam` of the front door."""
    monthly_budget_usd: float = Field(gt=0.0, le=1_000_000_000.0)
    """Budget per calendar month, in US dollars. At the limit, no job is admitted; running jobs continue.
    Behind a front door, jobs and requests share it: at the limit, requests are refused and jobs wait."""
    max_priority: int = Field(default=100, ge=0, le=100)
    """Highest priority that a job of the team may have. A queue's default above it is lowered to it."""
    max_places_percent: int = Field(default=100, ge=1, le=100)
    """Largest share of a model's places that the team's jobs hold, in percent. They may hold at least one."""
    data_prefixes: list[S3Folder] = Field(default_factory=list, max_length=20)
    """S3 prefixes that hold the input files and images of the team, such as `s3://bucket/folder/`."""


class BatchLoad(Section):
    """Expected daily load of a queue. Only `blueprints plan` uses it, to calculate the use of AWS quotas."""

    requests_per_day: int = Field(ge=1, le=10_000_000_000)
    """Requests per day."""
    # The limit of OpenAI's Batch API.
    requests_per_job: int = Field(default=50_000, ge=1, le=50_000_000)
    """Mean number of requests per job."""


class BatchQueue(Section):
    """A queue of jobs for one model."""

    name: Name
    """Name of the queue."""
    model: Name
    """Name of the model that answers the jobs."""
    priority: int = Field(default=10, ge=0, le=100)
    """Default priority of its jobs. Jobs with a higher priority run first; each hour of waiting adds one."""
    deadline_hours: float = Field(default=24.0, gt=0.0, le=336.0)
    """Maximum duration of a job, in hours."""
    rates: Rates | None = None
    """Prices of its jobs. Without it, the model's `rates`; one of them is required. With both, they are
    equal."""
    load: BatchLoad | None = None
    """Expected daily load. Without it, `blueprints plan` does not check service quotas for this queue."""
    workload: RequestLengths | None = None
    """Lengths of its requests. Without it, those of the model's `workload`."""
    deployments: list[Name] = Field(default_factory=list, max_length=5)
    """Names of the model's deployments that answer its jobs, at an address of their own, such as `[night]`.
    Requests in real time go only to the others, if there are any. Without it, those behind the model's own
    address. Queues of one model name the same ones."""


class PromptTemplate(Section):
    """Template that turns each row of a file into a request."""

    text: str = Field(min_length=1, max_length=65_536)
    """Jinja2 template of the prompt. The fields of a row are its variables."""
    image_fields: list[str] = Field(default_factory=list, max_length=20)
    """Fields of a row that hold S3 addresses of images. The images come before the prompt."""
    parameters: dict[str, ArgumentValue] = Field(default_factory=dict, max_length=50)
    """Further fields of the request body, such as `max_tokens: 200`."""


class Manifest(Section):
    """Description of a job."""

    inputs: list[S3Object] = Field(min_length=1, max_length=1000)
    """S3 objects to read: `.jsonl`, `.csv` or `.parquet`. `{date}` is the date of the scheduled time."""
    deadline_hours: float | None = Field(default=None, gt=0.0, le=336.0)
    """Hours until the job must be finished. Without it, the value of the queue applies."""
    priority: int | None = Field(default=None, ge=0, le=100)
    """Priority; jobs with a higher one run first. Without it, the value of the queue applies."""
    budget_usd: float | None = Field(default=None, gt=0.0)
    """Maximum cost of the job, in US dollars. Without it, only the team's monthly budget limits the cost."""
    skip_invalid: bool = False
    """Whether valid lines run even if other lines are invalid."""
    template: PromptTemplate | None = None
    """Template that turns rows into requests. Without it, each line is a request."""
    signal: Name | None = None
    """Signal that stores the answers by their `custom_id`. Without it, answers are written to files only."""


class BatchSchedule(Section):
    """A job that starts on a schedule."""

    name: Name
    """Name of the schedule."""
    queue: Name
    """Name of the queue that the job joins."""
    team: Name
    """Name of the team that the job belongs to."""
    cron: CronExpression
    """Time in UTC: minutes, hours, day of month, month, weekday and year, such as `0 6 * * ? *`."""
    manifest: Manifest
    """Description of the job."""


class EksBatchWorkers(Section):
    """Workers run as pods on the system nodes. KEDA scales them."""


class EcsBatchWorkers(Section):
    """Workers run as tasks on AWS Fargate and use no capacity of the cluster."""

    spot_percent: int = Field(default=75, ge=0, le=100)
    """Percentage of tasks on Fargate Spot, which AWS stops with two minutes' notice. One task is not Spot."""


class BatchWorkers(Section):
    """Workers that run the shards of jobs. Per model, they scale to the number of queued shards."""

    # With 0, an idle model costs nothing, but its next job waits until a worker has started.
    min: int = Field(default=1, ge=0, le=100)
    """Minimum number of workers per model, also when the queue is empty."""
    max: int = Field(default=4, ge=1, le=100)
    """Maximum number of workers per model. If it equals `min`, the number is fixed."""
    latency_percent: int | None = Field(default=None, ge=0, le=1000)
    """Percentage by which batch may slow down answers. Without it, 20, or 100 if Dynamo's KV-aware router
    makes batch wait for other requests. Use 0 if there are none."""
    eks: EksBatchWorkers | None = None
    """Run workers as pods of the cluster. This is the default."""
    ecs: EcsBatchWorkers | None = None
    """Run workers as tasks on AWS Fargate."""


class Batch(Section):
    """Jobs of many requests, which use the capacity that interactive requests leave free."""

    # Each model with a queue gets its own workers, and one stack has room for this many.
    queues: list[BatchQueue] = Field(min_length=1, max_length=15)
    """Queues of jobs."""
    schedules: list[BatchSchedule] = Field(default_factory=list, max_length=50)
    """Jobs that start on a schedule."""
    keep_days: int = Field(default=30, ge=1, le=365)
    """Days after which S3 deletes manifests, intermediate objects and results of jobs."""
    workers: BatchWorkers = default({})
    """Workers that run the jobs. Without it, one to four workers per model."""
