"""What the picture says about a blueprint: its facts in words, without any layout."""

from __future__ import annotations

import re
from collections.abc import Sequence

import inference_catalog as catalog
from inference_blueprints.report.sizing.node_packing import workers_of_pool
from inference_blueprints.serving.traffic import (
    further_routes,
    own_deployments,
    serving_deployments,
    way_address,
)
from inference_blueprints.serving.types import KvTransfer, ServingPlan
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.spec.derived import models_domain
from inference_blueprints.spec.types import BatchQueue, Blueprint, StreamingJob
from inference_catalog.addresses import DEFAULT_CIDR, DEFAULT_ZONES
from inference_contracts.records import dataclass

_MAX_NAMES = 3
OWN_BUCKET = "the platform's bucket"
#: Registries that anybody on the internet can reach.
PUBLIC_REGISTRIES = frozenset(
    {
        *("docker.io", "ecr-public.aws.com", "gcr.io", "ghcr.io", "nvcr.io", "public.ecr.aws", "quay.io"),
        "registry.k8s.io",
    }
)
#: A private registry of an account, IPv4 only or dual stack. Source: Amazon ECR User Guide, "Making requests
#: to Amazon ECR registries".
_ECR = re.compile(r"\d{12}\.dkr[.-]ecr(-fips)?\.")
_ECR_ON_THE_INTERNET = "Amazon ECR's public endpoint"


@dataclass(frozen=True, slots=True)
class Scene:
    """A blueprint with its plan, asked for words."""

    blueprint: Blueprint
    plan: ServingPlan
    """The serving plan computed from it."""

    @property
    def title(self) -> str:
        """The platform's name."""
        return self.blueprint.metadata.name

    @property
    def subtitle(self) -> str:
        """What it serves, on what and where."""
        models = counted(len(self.plan.models), "model")
        pools = counted(len(self.blueprint.spec.pools), "pool")
        devices = sum(
            worker.accelerator_count
            for pool in self.blueprint.spec.pools
            for worker in workers_of_pool(self.plan, pool.name)
        )
        accelerators = counted(devices, "accelerator")
        return f"{models} on {accelerators} in {pools}: {self.cluster_name}, {self.region}"

    @property
    def region(self) -> str:
        """The AWS region."""
        return self.blueprint.spec.environment.region

    @property
    def account(self) -> str:
        """The AWS account, as far as the blueprint names it."""
        account = self.blueprint.spec.environment.account
        return f"AWS account {account}" if account else "Your AWS account"

    @property
    def zones(self) -> tuple[str, ...]:
        """Availability zones of the private subnets."""
        named = self.blueprint.spec.environment.availability_zones
        return tuple(named or catalog.regions()[self.region][:DEFAULT_ZONES])

    @property
    def has_own_vpc(self) -> bool:
        """Whether the VPC is created."""
        return self.blueprint.spec.network.existing is None

    @property
    def vpc(self) -> str:
        """The VPC's id, or that it is new, and its range."""
        network = self.blueprint.spec.network
        if network.existing:
            return f"{network.existing.vpc_id}, {network.existing.vpc_cidr}"
        return f"new, {network.cidr or DEFAULT_CIDR}"

    @property
    def sources(self) -> str:
        """Ranges that may call the models."""
        cidrs = self.blueprint.spec.network.source_cidrs
        return ", ".join(cidrs) if cidrs else "the VPC"

    @property
    def scheme(self) -> str:
        """How the models are called: ``http`` or ``https``."""
        return "https" if self.blueprint.spec.network.certificate_arn else "http"

    @property
    def zone(self) -> str:
        """The private zone with the models' names."""
        return models_domain(self.title, self.blueprint.spec.network)

    @property
    def cluster_name(self) -> str:
        """The cluster in AWS's words."""
        eks = self.blueprint.spec.cluster.eks
        return f"Amazon EKS {eks.version}" if eks else "Amazon ECS"

    @property
    def machines(self) -> str:
        """What the EC2 instances of the pools are called."""
        return "Hosts" if self.blueprint.spec.cluster.ecs else "Nodes"

    @property
    def system_note(self) -> str:
        """Where processes without accelerators run."""
        return "on AWS Fargate" if self.blueprint.spec.cluster.ecs else "on system nodes"

    @property
    def pools_note(self) -> str:
        """Who starts the nodes of the pools."""
        return "hosts that ECS starts" if self.blueprint.spec.cluster.ecs else "nodes that Karpenter starts"

    @property
    def controllers_sentence(self) -> str:
        """What the programs of the cluster itself do for workers."""
        if self.blueprint.spec.cluster.ecs:
            found = "Workers and frontends find each other in the discovery store. "
            return f"{found if self.plan.has_frontends else ''}ECS starts hosts for waiting tasks."
        return "Karpenter starts nodes for waiting workers, up to each pool's limit, and removes empty ones."

    @property
    def cluster_endpoint(self) -> str:
        """Where the Kubernetes API can be reached from."""
        eks = self.blueprint.spec.cluster.eks
        return (
            "private endpoint" if eks and eks.endpoint_access == "private" else "public and private endpoint"
        )

    @property
    def is_kv_aware(self) -> bool:
        """Whether any model's requests follow the KV cache."""
        return any(model.routing.chosen == "kvAware" for model in self.blueprint.spec.models)

    @property
    def publishes_kv_events(self) -> bool:
        """Whether any model's workers tell its routers what they have cached."""
        return any(
            model.routing.chosen == "kvAware" and (picker is None or picker.prefix_scorer == "precise")
            for model, plan in zip(self.blueprint.spec.models, self.plan.models, strict=True)
            for picker in (deployment.picker for deployment in plan.deployments)
        )

    @property
    def kv_transfers(self) -> tuple[KvTransfer, ...]:
        """What moves KV cache between roles; nothing where every worker does prefill and decode."""
        found = (each.kv_transfer for model in self.plan.models for each in model.deployments)
        return tuple(dict.fromkeys(each for each in found if each))

    @property
    def is_round_robin(self) -> bool:
        """Whether any model's requests go to the workers in turn."""
        return any(model.routing.chosen == "roundRobin" for model in self.blueprint.spec.models)

    @property
    def is_direct(self) -> bool:
        """Whether the load balancer sends any model's requests to its workers itself."""
        return any(model.routing.chosen == "leastRequests" for model in self.blueprint.spec.models)

    @property
    def has_routers(self) -> bool:
        """Whether any model has frontends or a router between the load balancer and its workers."""
        return "frontends" in self.entry_points

    @property
    def entry_points(self) -> str:
        """What the load balancer passes requests to: frontends, the workers of direct models, or both."""
        words = {
            "workers" if deployment.entry_point.is_worker else "frontends"
            for model in self.plan.models
            for deployment in model.deployments
        }
        return " or ".join(sorted(words))

    @property
    def buckets(self) -> tuple[str, ...]:
        """Buckets that weights come from."""
        sources = (model.weights for model in self.blueprint.spec.models)
        names = (
            OWN_BUCKET if source.mirror else source.s3.split("/")[2] if source.s3 else None
            for source in sources
        )
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def keeps_compiled(self) -> bool:
        """Whether workers keep what they compiled for their accelerators in the platform's bucket."""
        return any(
            process.artefacts
            for model in self.plan.models
            for deployment in model.deployments
            for process in deployment.processes
        )

    @property
    def uses_hugging_face(self) -> bool:
        """Whether any weights come from the Hugging Face Hub."""
        return any(not model.weights.in_s3 for model in self.blueprint.spec.models)

    @property
    def internet(self) -> tuple[str, ...]:
        """What nodes get from outside AWS, by where it is."""
        hub = ("Hugging Face Hub",) if self.uses_hugging_face else ()
        # Charts and their images come from public registries, whatever the images of the engines come from.
        controllers = ("controllers' images",) if self.blueprint.spec.cluster.eks else ()
        return (*hub, *dict.fromkeys(map(_place, self.registries)), *controllers)

    @property
    def internet_goods(self) -> str:
        """What nodes get from outside AWS, as part of a sentence."""
        weights = ("weights from the Hugging Face Hub",) if self.uses_hugging_face else ()
        hosts = ", ".join(
            f"{_place(host)} ({host})" if _place(host) == _ECR_ON_THE_INTERNET else host
            for host in self.registries
        )
        images = (f"container images from {hosts}",) if hosts else ()
        controllers = ("the controllers' images",) if self.blueprint.spec.cluster.eks else ()
        return listed((*weights, *images, *controllers))

    @property
    def internet_access(self) -> str:
        """The end of the sentence about it: how nodes reach the internet."""
        if self.has_own_vpc:
            return "the NAT gateways. Nothing on the internet can connect to them."
        return "the VPC's internet access."

    @property
    def services_sentence(self) -> str:
        """What nodes and functions get from AWS services, and send to them."""
        weights = (f"weights from S3 ({', '.join(self.buckets)})",) if self.buckets else ()
        registries = self.private_registries
        images = (f"container images from Amazon ECR ({', '.join(registries)})",) if registries else ()
        programs = ("compiled programs from S3",) if self.keeps_compiled else ()
        goods = listed((*weights, *images, *programs))
        through = "the VPC endpoints, without the internet" if self.has_own_vpc else "the network of the VPC"
        workers = f" Workers get {goods}." if goods else ""
        compiled = " The first worker compiles the model, and others load the result from S3."
        telemetry = " Metrics and logs go to CloudWatch." if self.blueprint.spec.observability else ""
        return (
            f"Regional AWS services are reached through {through}.{workers}"
            f"{compiled if self.keeps_compiled else ''}{telemetry}"
        )

    @property
    def queues(self) -> list[BatchQueue]:
        """The queues of batch jobs."""
        batch = self.blueprint.spec.batch
        return list(batch.queues) if batch else []

    @property
    def ways_in(self) -> list[BatchQueue | StreamingJob]:
        """The queues of batch jobs, and the streaming jobs."""
        return [*self.queues, *self.blueprint.spec.streaming]

    @property
    def front_door(self) -> DoorPlan | None:
        """The front door; None without one."""
        return self.plan.front_door

    @property
    def identities(self) -> str:
        """How callers of the front door identify themselves."""
        door = self.blueprint.spec.front_door
        identity = door.identity if door else None
        ways = (
            *(("API keys",) if identity and identity.api_keys else ()),
            *(("tokens of AWS STS",) if identity and identity.iam else ()),
            *(("tokens of an issuer",) if identity and identity.oidc else ()),
        )
        return listed(ways)

    @property
    def calling_sentence(self) -> str:
        """How applications call the front door."""
        door = self.front_door
        address = f"https://{door.host_name}/v1" if door else ""
        return f"Applications call the OpenAI API at one address, {address}, with {self.identities}."

    @property
    def ledger_sentence(self) -> str:
        """What the front door keeps elsewhere."""
        return (
            "The door asks who calls and which model is meant, and counts budgets in the store; each answer "
            "becomes a usage record in S3."
        )

    @property
    def names(self) -> str:
        """What the private zone has names for."""
        spec = self.blueprint.spec
        if self.front_door:
            return f"{self.front_door.host_name} for all models"
        more = sum(len(further_routes(spec, model)) for model in spec.models)
        return f"one name per model, and {more} more" if more else "one name per model"

    def has_own_address(self, way: BatchQueue | StreamingJob) -> bool:
        """Return whether a queue or a job sends its requests to another address than the model's."""
        return way_address(self.blueprint.spec, way) != way.model

    @property
    def named_deployments(self) -> frozenset[tuple[str, str]]:
        """Model and name of the deployments that queues and jobs have for themselves.

        Empty if there are none, or if every deployment is one of them: then nothing tells them apart.
        """
        spec = self.blueprint.spec
        named = {
            (model.name, deployment)
            for model in spec.models
            for deployments in further_routes(spec, model).values()
            for deployment in deployments
        }
        own = {(model.name, name) for model in spec.models for name in own_deployments(spec, model)}
        return frozenset() if named & own else frozenset(named)

    def address_sentence(self, ways: Sequence[BatchQueue | StreamingJob]) -> str:
        """Return where the requests of queues or of jobs go that have deployments of their own."""
        spec = self.blueprint.spec
        addresses: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for way in ways:
            if self.has_own_address(way):
                key = (way_address(spec, way), way.model, serving_deployments(spec, way))
                addresses.setdefault(key, []).append(way.name)
        noun = "queue" if ways and isinstance(ways[0], BatchQueue) else "streaming job"
        parts = (
            f"{address}.{self.zone} leads to {listed([f'{model}/{each}' for each in deployments])}, for "
            f"{noun if len(names) == 1 else f'{noun}s'} {listed(first_names(names))}"
            for (address, model, deployments), names in addresses.items()
        )
        return f"{'; '.join(parts)}."

    @property
    def streaming_sentence(self) -> str:
        """Which address streaming jobs call."""
        own = [self.has_own_address(job) for job in self.blueprint.spec.streaming]
        address = "the same address as applications"
        if any(own):
            address = "an address of their own" if all(own) else f"{address}, or an address of their own"
        return f"They call the model at {address}, without waiting for one another."

    @property
    def batch_sentence(self) -> str:
        """How requests of jobs reach the models."""
        spec = self.blueprint.spec
        place = "on AWS Fargate" if spec.batch and spec.batch.workers.ecs else "on the system nodes"
        shift = " Capacity shift gives them what real time leaves." if spec.capacity_shift else ""
        own = [self.has_own_address(queue) for queue in self.queues]
        if all(own):
            return f"Workers {place} call the deployments that the queues have for themselves.{shift}"
        some = ", or the deployments that a queue has for itself" if any(own) else ""
        return f"Workers {place} call the models with the capacity that is free{some}.{shift}"

    @property
    def operations_sentence(self) -> str:
        """What the functions do that watch the pools."""
        spec = self.blueprint.spec
        found = [
            *(["GPU health looks for broken GPUs."] if spec.gpu_health else []),
            *(
                ["Capacity shift forecasts the demand of real time and lends the rest to batch."]
                if spec.capacity_shift
                else []
            ),
        ]
        reader = "Both read" if len(found) > 1 else "It reads"
        return f"{' '.join(found)} {reader} the platform's metrics."

    @property
    def registries(self) -> tuple[str, ...]:
        """Hosts that the serving images come from over the internet or another network than AWS's."""
        return tuple(host for host in self._image_hosts if not self._has_endpoint(host))

    @property
    def private_registries(self) -> tuple[str, ...]:
        """Hosts of Amazon ECR that the serving images come from without the internet."""
        return tuple(filter(self._has_endpoint, self._image_hosts))

    @property
    def outside(self) -> str:
        """What is outside AWS: the internet, or also a registry that may be in a network of one's own."""
        public = PUBLIC_REGISTRIES | {_ECR_ON_THE_INTERNET}
        return "Internet" if public.issuperset(map(_place, self.registries)) else "Outside AWS"

    def _has_endpoint(self, host: str) -> bool:
        """Return whether a VPC endpoint leads to a registry: of Amazon ECR, of this region, and IPv4 only.

        Source: Amazon ECR User Guide, "Making requests to Amazon ECR registries" (no AWS PrivateLink over
        dual-stack endpoints) and "Amazon ECR interface VPC endpoints" (requests of one region).
        """
        return bool(re.fullmatch(rf"\d{{12}}\.dkr\.ecr\.{self.region}\.amazonaws\.com(\.cn)?", host))

    @property
    def _image_hosts(self) -> tuple[str, ...]:
        images = (
            process.image
            for model in self.plan.models
            for deployment in model.deployments
            for process in deployment.processes
        )
        return tuple(dict.fromkeys(image.split("/")[0] for image in images))


def _place(host: str) -> str:
    """Return what a registry is called where it is reached over the internet."""
    return _ECR_ON_THE_INTERNET if _ECR.match(host) else host


def listed(parts: Sequence[str]) -> str:
    """Return parts of a sentence with commas and "and" between them."""
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else "".join(parts)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one.

    noun: The noun in the singular.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first names, and how many more there are."""
    shown = names if len(names) <= _MAX_NAMES else names[: _MAX_NAMES - 1]
    more = len(names) - len(shown)
    return (*shown, f"and {more} more") if more else tuple(shown)
