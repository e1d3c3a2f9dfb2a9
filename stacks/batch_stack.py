"""Batch: jobs of many requests, from submission to results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm
from constructs import Construct

import inference_catalog as catalog
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.traffic import (
    is_apart,
    lent_addresses,
    model_traffic,
    queue_traffic,
    serving_deployments,
    way_address,
)
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.serving.way_capacity import way_capacities
from inference_blueprints.spec.derived import queue_rates
from inference_blueprints.spec.types import (
    Batch,
    BatchQueue,
    BatchWorkers,
    Blueprint,
    FrontDoor,
    Model,
    Rates,
    SignalStore,
    Spec,
    Workload,
)
from inference_constructs.batch import (
    BatchJobs,
    BatchMonitoring,
    BatchRestApi,
    BatchStore,
    JobSchedule,
    JobsDoor,
    ModelWorker,
    WorkerCount,
    WorkerImage,
)
from inference_constructs.network import Gateway
from inference_constructs.signals import SignalAccess
from inference_contracts import batch_names, door_names
from inference_contracts.batch_configuration import (
    BatchTeam,
    Capacity,
    Configuration,
    DeclaredSignal,
    JobLimits,
    Queue,
)
from inference_contracts.batch_limits import (
    LATENCY_PERCENT_BEHIND,
    PIXEL_SIDE_PER_TOKEN,
    SHARDS_PER_WORKER,
)
from inference_contracts.batch_names import API_OUTPUT
from inference_contracts.platform_keys import SECRET_VARIABLE
from stacks.worker_compute import WorkerCompute

if TYPE_CHECKING:  # platforms without a front door need not import the services that it uses
    from inference_constructs.front_door import DoorStore, PlatformKeySecret


@dataclass(frozen=True)
class BatchDoor:
    """The front door, through which workers send their requests."""

    host_name: str
    keys: PlatformKeySecret
    """The secret with the key of each team."""
    time_zone: str
    """Time zone of the months of its budgets."""
    has_keys: bool
    """Whether callers may have API keys."""
    store: DoorStore
    """Its tables."""


class BatchStack(cdk.Stack):
    """The API, the state machine and the workers of batch jobs.

    platform: `metadata.name`.
    blueprint, batch: The blueprint, and its section on batch.
    store: Tables and bucket of batch jobs.
    signals: Access to the signal store; None if jobs do not publish signals.
    vpc, vpc_cidr: VPC from which the API is reachable, and its IPv4 range.
    gateway: The models' load balancer.
    limited: Models whose places the capacity shift limits.
    door: The front door. None if workers call the models.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        blueprint: Blueprint,
        batch: Batch,
        plan: ServingPlan,
        store: BatchStore,
        signals: SignalAccess | None,
        vpc: ec2.IVpc,
        vpc_cidr: str,
        compute: WorkerCompute,
        gateway: Gateway,
        limited: Sequence[str],
        door: BatchDoor | None,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        spec = blueprint.spec
        configuration = Configuration(
            platform=platform,
            queues=tuple(queue_configuration(blueprint, batch, queue, plan) for queue in batch.queues),
            teams=tuple(BatchTeam.from_values(team.model_dump()) for team in spec.teams),
            signals=_signals(spec.signal_store) if spec.signal_store else (),
            limited_keys=_limited_keys(spec.front_door) if spec.front_door else (),
        )
        self.jobs = BatchJobs(
            self,
            "Jobs",
            configuration=configuration,
            limited=limited,
            schedules=[
                JobSchedule(
                    name=schedule.name,
                    queue=schedule.queue,
                    team=schedule.team,
                    cron=schedule.cron,
                    manifest=schedule.manifest.model_dump(
                        by_alias=True, exclude_none=True, exclude_defaults=True
                    ),
                )
                for schedule in batch.schedules
            ],
            store=store,
            signals=signals,
            door=JobsDoor(door.store, door.time_zone, door.has_keys) if door else None,
        )
        self.api = BatchRestApi(
            self,
            "Api",
            handler=self.jobs.api,
            authorizer=self.jobs.authorizer,
            vpc=vpc,
            vpc_cidr=vpc_cidr,
        )
        if door:
            ssm.StringParameter(
                self,
                "HostForDoor",
                parameter_name=door_names.batch_parameter(platform),
                string_value=self.api.host,
                description="Host name of the batch API, for the front door.",
            )
        compute.add_workers(
            self,
            self._model_workers(
                spec, batch, gateway, store, plan, platform=platform, limited=limited, door=door
            ),
            WorkerCount(batch.workers.min, batch.workers.max, SHARDS_PER_WORKER),
            WorkerImage(
                self,
                "WorkerImage",
                encryption_key=store.encryption_key,
                wait=compute.waits_for_image,
            ),
        )
        BatchMonitoring(
            self,
            "Monitoring",
            configuration=configuration,
            functions=self.jobs.functions,
            state_machine=self.jobs.state_machine,
            shard_queues=self.jobs.shard_queues,
            api=self.api.api,
            undelivered=self.jobs.undelivered,
        )
        cdk.CfnOutput(self, API_OUTPUT, value=f"{self.api.api.url}v1")

    def _model_workers(
        self,
        spec: Spec,
        batch: Batch,
        gateway: Gateway,
        store: BatchStore,
        plan: ServingPlan,
        *,
        platform: str,
        limited: Sequence[str],
        door: BatchDoor | None,
    ) -> list[ModelWorker]:
        """Return a worker for each model. It sends requests to the deployments that the queues name."""
        hosts = {queue.model: way_address(spec, queue) for queue in batch.queues}
        # All queues of a model name the same deployments.
        lent = {queue.model: lent_addresses(spec, queue) for queue in batch.queues}
        # Where workers come and go, their part of the work comes and goes with them: nobody gives way.
        limited = [model for model in limited if not lent[model]]
        headers = {model.name: model.batch_headers for model in plan.models}
        ceilings = {batch_names.CEILINGS_TABLE: store.table_name}
        return [
            ModelWorker(
                model=model,
                queue=queue,
                environment={
                    "AWS_REGION": self.region,
                    batch_names.BUCKET: store.bucket_name,
                    **_pacing(batch.workers, headers[model]),
                    **(
                        _through_the_door(door, [*lent[model].values()])
                        if door
                        else _to_the_model(gateway, hosts[model], [*lent[model]])
                    ),
                    batch_names.MODEL: model,
                    batch_names.PLATFORM: platform,
                    batch_names.PROGRESS_TABLE: store.progress_table_name,
                    batch_names.QUEUE_URL: queue.queue_url,
                    batch_names.SHARDS_AT_ONCE: str(SHARDS_PER_WORKER),
                    **(ceilings if model in limited else {}),
                },
                store=store,
                state_machine=self.jobs.state_machine,
                inputs=self.jobs.inputs,
                limited=model in limited,
                keys=door.keys if door else None,
            )
            for model, queue in self.jobs.shard_queues.items()
        ]


def _to_the_model(gateway: Gateway, host: str, lent: Sequence[str]) -> Mapping[str, str]:
    """Return where a worker sends requests: an address, and those of deployments that may have no workers."""
    own, *others = (f"{gateway.scheme}://{label}.{gateway.zone_name}" for label in (host, *lent))
    return {batch_names.ENDPOINT: own} | ({batch_names.LENT_ENDPOINTS: ",".join(others)} if others else {})


def _limited_keys(door: FrontDoor) -> tuple[str, ...]:
    """Return the keys that have budgets in the file. A budget of each key limits those of batch too."""
    return tuple(budget.key for budget in door.budgets if budget.key and budget.key != "*")


def _through_the_door(door: BatchDoor, lent: Sequence[str]) -> Mapping[str, str]:
    """Return the same of a worker that calls the front door, where each way has a model of its own."""
    own = {batch_names.ENDPOINT: f"https://{door.host_name}", SECRET_VARIABLE: door.keys.arn}
    return own | ({batch_names.LENT_DEPLOYMENTS: ",".join(lent)} if lent else {})


def _pacing(workers: BatchWorkers, headers: Mapping[str, str]) -> dict[str, str]:
    """Return how a worker gives way to interactive requests: as the blueprint says, else by the router."""
    latency = workers.latency_percent
    if latency is None and headers:
        latency = LATENCY_PERCENT_BEHIND
    pacing = {} if latency is None else {batch_names.LATENCY_PERCENT: str(latency)}
    marks = {batch_names.REQUEST_HEADERS: json.dumps(dict(headers))} if headers else {}
    return pacing | marks


def queue_configuration(blueprint: Blueprint, batch: Batch, queue: BatchQueue, plan: ServingPlan) -> Queue:
    """Return a queue as the functions read it."""
    spec = blueprint.spec
    model = next(each for each in spec.models if each.name == queue.model)
    requests = _requests(blueprint, model, queue)
    images = requests.images
    return Queue(
        name=queue.name,
        model=queue.model,
        priority=queue.priority,
        deadline_hours=queue.deadline_hours,
        keep_days=batch.keep_days,
        capacity=_capacity(queue_rates(spec, queue), requests, batch.workers),
        limits=JobLimits(request_tokens=_longest_request(plan, model, serving_deployments(spec, queue))),
        request_limits=catalog.request_limits(model.engine.chosen).as_record(),
        image_steps=images.steps if images else 0,
        public_name=model.public_name or "",
    )


def _requests(blueprint: Blueprint, model: Model, queue: BatchQueue) -> Workload:
    """Return the mean requests of a queue, and the rate at which its deployments answer them.

    For a queue that is a part of the model's own workload, that is the stated peak. Otherwise it is what
    other requests leave on the mean of a day; without a latency profile, the rate that its deadline needs.
    """
    if not is_apart(queue):
        return model_traffic(blueprint.spec, model).means
    index = blueprint.spec.models.index(model)
    roles = [role for place in range(len(model.deployments)) for role in resolve(blueprint, index, place)]
    left = way_capacities(blueprint.spec, [queue], roles)[queue.name].left_by_hour
    means = queue_traffic(blueprint.spec, model, queue).means
    rate = sum(left) / len(left) if left else 0.0
    return means.model_copy(update={"peak_requests_per_second": rate}) if rate else means


def _capacity(rates: Rates, workload: Workload, workers: BatchWorkers) -> Capacity:
    """Return prices, and the rates of a model's workers at the peak. Its images count as tokens."""
    peak = workload.peak_requests_per_second
    reading: float
    if images := workload.images:
        per_image = -(-images.width // PIXEL_SIDE_PER_TOKEN) * -(-images.height // PIXEL_SIDE_PER_TOKEN)
        reading, writing = 0, peak * images.per_request * per_image
    else:
        # At the peak, workers read and write at the same time. Doing only one of them is twice as fast.
        reading, writing = 2 * peak * workload.input_tokens, 2 * peak * workload.output_tokens
    return Capacity(
        input_tokens_per_second=reading,
        output_tokens_per_second=writing,
        usd_per_million_input_tokens=rates.usd_per_million_input_tokens,
        usd_per_million_output_tokens=rates.usd_per_million_output_tokens,
        # Calculated for the maximum number of workers: shards without a worker wait in the queue, which
        # then scales out the workers.
        places=workers.max * SHARDS_PER_WORKER,
    )


def _signals(store: SignalStore) -> tuple[DeclaredSignal, ...]:
    return tuple(
        DeclaredSignal(each.name, each.team, each.ttl_hours or store.ttl_hours) for each in store.signals
    )


def _longest_request(plan: ServingPlan, model: Model, names: Sequence[str]) -> int:
    """Return the length in tokens of the longest request that each of some deployments accepts."""
    return min(
        process.engine.max_model_len
        for deployment in plan.model(model.name).deployments
        if deployment.name in names
        for process in deployment.workers
        if process.engine
    )
