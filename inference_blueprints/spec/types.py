"""The blueprint's types: what a YAML file may say, and nothing more.

A section that is not named is off. Choices are one-of by key (``eks``, ``aggregated``), never a type field.
Defaults that production needs are on. Keys are camelCase in YAML and snake_case here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from inference_blueprints.spec import formats

API_VERSION: Literal["inference-blueprints/v1alpha1"] = "inference-blueprints/v1alpha1"
KIND: Literal["Blueprint"] = "Blueprint"

Name = Annotated[str, StringConstraints(pattern=formats.NAME)]
Region = Annotated[str, StringConstraints(pattern=formats.REGION)]
AvailabilityZone = Annotated[str, StringConstraints(pattern=formats.AVAILABILITY_ZONE)]
AccountId = Annotated[str, StringConstraints(pattern=formats.ACCOUNT_ID)]
Cidr = Annotated[str, StringConstraints(pattern=formats.CIDR)]
InstanceTypeName = Annotated[str, StringConstraints(pattern=formats.INSTANCE_TYPE)]
VpcId = Annotated[str, StringConstraints(pattern=formats.VPC_ID)]
SubnetId = Annotated[str, StringConstraints(pattern=formats.SUBNET_ID)]
SecretArn = Annotated[str, StringConstraints(pattern=formats.SECRET_ARN)]
CertificateArn = Annotated[str, StringConstraints(pattern=formats.CERTIFICATE_ARN)]
Domain = Annotated[str, StringConstraints(pattern=formats.DOMAIN)]
CapacityReservationId = Annotated[str, StringConstraints(pattern=formats.CAPACITY_RESERVATION_ID)]
QualifiedName = Annotated[str, StringConstraints(pattern=formats.QUALIFIED_NAME)]
LabelValue = Annotated[str, StringConstraints(pattern=formats.LABEL_VALUE)]
KubernetesVersion = Annotated[str, StringConstraints(pattern=formats.KUBERNETES_VERSION)]
HuggingFaceRepository = Annotated[str, StringConstraints(pattern=formats.HUGGING_FACE_REPOSITORY)]
Revision = Annotated[str, StringConstraints(pattern=formats.REVISION)]
S3Prefix = Annotated[str, StringConstraints(pattern=formats.S3_PREFIX)]
ArgumentValue = str | int | float | bool


class Section(BaseModel):
    """A mapping of the blueprint; keys that it does not name are errors."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        defer_build=True,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        strict=True,
    )


class Choice(Section):
    """A section of which exactly one key is given."""

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: Any) -> Any:
        """Refuse none and several; an unknown key alone is left to the error that names it."""
        if not isinstance(value, dict):
            return value
        names = {field.alias or name for name, field in cls.model_fields.items()} | set(cls.model_fields)
        given = [key for key in value if key in names]
        if len(given) > 1 or not value:
            raise PydanticCustomError("one_of", "exactly one key is needed", {"given": given})
        return value

    @property
    def chosen(self) -> str:
        """The key that is given, as the YAML file spells it."""
        [name] = [name for name in type(self).model_fields if getattr(self, name) is not None]
        return to_camel(name)


def _default(yaml: dict[str, Any]) -> Any:
    """Make a field whose default is what a file could say in its place."""
    return Field(default=yaml, validate_default=True)


class Metadata(Section):
    """What the platform is called."""

    name: Name
    """Prefix of every stack and name of the cluster, so two platforms never meet in one account."""


class Environment(Section):
    """Where the platform is deployed."""

    region: Region
    """AWS region, such as us-west-2."""
    account: AccountId | None = None
    """Account that the stacks are bound to; without it the account of the credentials is used."""
    availability_zones: list[AvailabilityZone] | None = Field(default=None, min_length=2, max_length=4)
    """Zones to use, two to four of the region; without it the first three that the catalogue knows."""
    data_removal: Literal["retain", "destroy"] = "retain"
    """What becomes of buckets and tables on destroy: `retain` keeps them."""
    tags: dict[str, str] = Field(default_factory=dict, max_length=40)
    """Tags for every resource, beside the library's own; AWS takes 50 in all."""


class ExistingNetwork(Section):
    """A VPC that is there already."""

    vpc_id: VpcId
    """Id of the VPC."""
    vpc_cidr: Cidr
    """Its IPv4 range, which the models' load balancer admits unless `sourceCidrs` says otherwise."""
    private_subnet_ids: list[SubnetId] = Field(min_length=2, max_length=4)
    """Private subnets, one a zone, in the order of `environment.availabilityZones`."""


class Network(Section):
    """How the platform is reached; without this section a VPC of its own over plain HTTP inside it."""

    cidr: Cidr | None = None
    """IPv4 range of the new VPC, /16 to /20; without it 10.0.0.0/16."""
    existing: ExistingNetwork | None = None
    """Use this VPC and create none; mutually exclusive with `cidr`."""
    source_cidrs: list[Cidr] | None = Field(default=None, min_length=1)
    """Ranges that may call the models; without it the VPC alone."""
    certificate_arn: CertificateArn | None = None
    """ACM certificate of the models' load balancer: HTTPS instead of HTTP; needs `domain`."""
    domain: Domain | None = None
    """Private zone in which each model gets a name; without it `<metadata.name>.internal`."""


class EksCluster(Section):
    """An EKS cluster."""

    version: KubernetesVersion
    """Kubernetes version, quoted: "1.35"."""
    endpoint_access: Literal["private", "publicAndPrivate"] = "private"
    """Whether the Kubernetes API can be reached from outside the VPC."""


class Cluster(Choice):
    """What runs the containers."""

    eks: EksCluster | None = None
    """Amazon EKS with Karpenter."""


class OnDemand(Section):
    """Instances at the listed price."""


class Spot(Section):
    """Spare instances that AWS may take back with two minutes' notice."""

    on_demand_fallback: bool = False
    """Whether on-demand instances stand in where there is no spot capacity."""


class ReservedCapacity(Choice):
    """Which capacity that is paid for already; the pool never starts an instance outside of it."""

    id: CapacityReservationId | None = None
    """Its id; it is of one instance type and one zone."""
    tags: dict[str, str] | None = Field(default=None, min_length=1, max_length=20)
    """Tags that it carries, all of them; several may, and later ones count without a deploy."""


class Purchase(Choice):
    """How the pool's instances are paid for."""

    on_demand: OnDemand | None = None
    """At the listed price."""
    spot: Spot | None = None
    """Spare capacity."""
    reservation: ReservedCapacity | None = None
    """On-Demand Capacity Reservations."""
    capacity_block: ReservedCapacity | None = None
    """Capacity Blocks for ML, which end on a date: nodes drain 40 minutes before it."""


class NodeCount(Section):
    """How many nodes a pool may hold."""

    min: int = Field(default=0, ge=0, le=5000)
    """Nodes that are kept whether pods need them or not; 0 lets the pool go to nothing."""
    max: int = Field(ge=1, le=5000)
    """Nodes at the most; Karpenter is limited to this many nodes' accelerators."""


class Taint(Section):
    """What keeps pods of others off a pool's nodes; the models that name the pool tolerate it."""

    key: QualifiedName
    """Key."""
    value: LabelValue = ""
    """Value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """What becomes of pods that do not tolerate it."""


class Disk(Section):
    """The EBS volume: for images where an instance type has no NVMe, else for the operating system alone."""

    size_gib: int = Field(default=200, ge=50, le=16384)
    """Size in GiB."""


class Pool(Section):
    """Nodes that are interchangeable for the models that name the pool."""

    name: Name
    """Name by which deployments refer to the pool."""
    instance_types: list[InstanceTypeName] = Field(min_length=1, max_length=50)
    """EC2 instance types, of one architecture and one accelerator."""
    purchase: Purchase = _default({"onDemand": {}})
    """How the instances are paid for; without it on demand."""
    nodes: NodeCount
    """How many nodes the pool may hold."""
    availability_zone: AvailabilityZone | None = None
    """The one zone that its nodes are in; without it any of the platform's."""
    efa: bool = False
    """Whether nodes start with all their EFA interfaces, and workers get the share of their accelerators."""
    labels: dict[str, LabelValue] = Field(default_factory=dict, max_length=50)
    """Labels for the nodes, beside the library's own."""
    taints: list[Taint] = Field(default_factory=list, max_length=20)
    """Taints for the nodes, beside that of their accelerators."""
    disk: Disk = _default({})
    """The nodes' EBS volume."""


class Mirror(Section):
    """The model is copied once into the platform's own bucket, and workers stream it from there."""


class Weights(Section):
    """Where the weights come from: exactly one of `huggingFace` and `s3`."""

    hugging_face: HuggingFaceRepository | None = None
    """Repository on the Hugging Face Hub."""
    revision: Revision | None = None
    """Commit or tag of that repository; pins what is served."""
    token_secret_arn: SecretArn | None = None
    """Secrets Manager secret with the Hub token of a gated model."""
    mirror: Mirror | None = None
    """Copy that repository once into the platform's bucket and stream it; needs a commit as `revision`."""
    s3: S3Prefix | None = None
    """Prefix in S3 with the model's files; streamed into the GPUs. Needs `catalog`."""
    catalog: str | None = None
    """Model catalogue entry of the same shape, where the repository is not an entry itself."""

    @property
    def is_streamed(self) -> bool:
        """Whether workers stream the weights from S3 and keep none on disk."""
        return self.s3 is not None or self.mirror is not None


class VllmEngine(Section):
    """vLLM."""

    args: dict[str, ArgumentValue] = Field(default_factory=dict, max_length=200)
    """Engine arguments without dashes, such as `max-model-len: 8192`; those that the plan owns are errors."""


class Engine(Choice):
    """The inference engine."""

    vllm: VllmEngine | None = None
    """vLLM at the release that the catalogue pins."""


class DynamoStack(Section):
    """NVIDIA Dynamo's frontend, router and operator."""


class Stack(Choice):
    """What stands before the engines."""

    dynamo: DynamoStack | None = None
    """NVIDIA Dynamo."""


class KvAwareRouting(Section):
    """Requests go to the worker that holds most of their prefix, weighed against its load."""


class RoundRobinRouting(Section):
    """Requests go to the workers in turn."""


class Routing(Choice):
    """How requests are spread over a deployment's workers."""

    kv_aware: KvAwareRouting | None = None
    """By KV cache and load."""
    round_robin: RoundRobinRouting | None = None
    """In turn."""


class Workload(Section):
    """What the model is asked; sizes the KV cache and the local replay."""

    input_tokens: int = Field(ge=1, le=10_000_000)
    """Mean prompt length in tokens."""
    output_tokens: int = Field(ge=1, le=1_000_000)
    """Mean answer length in tokens."""
    shared_prefix_ratio: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of the prompt's tokens that other requests share, 0 to below 1."""
    peak_requests_per_second: float = Field(gt=0.0, le=1_000_000.0)
    """Requests per second in the busiest minute."""


class Objectives(Section):
    """Latencies that the deployment is to keep."""

    time_to_first_token_p90_ms: float | None = Field(default=None, gt=0.0)
    """Time to first token, 90th percentile, in milliseconds."""
    time_per_output_token_p90_ms: float | None = Field(default=None, gt=0.0)
    """Time per output token, 90th percentile, in milliseconds."""


class Aggregated(Section):
    """Every worker does prefill and decode."""

    pool: Name
    """Pool whose nodes the workers run on."""
    replicas: int = Field(ge=1, le=10_000)
    """Workers."""
    tensor_parallel_size: int = Field(ge=1, le=64)
    """Accelerators over which each worker's weights are split."""


class Deployment(Section):
    """One set of workers behind the model's route."""

    name: Name
    """Name of the deployment within its model."""
    aggregated: Aggregated
    """Prefill and decode in the same workers."""


class Model(Section):
    """A model that is served."""

    name: Name
    """Name under which the OpenAI API serves it."""
    weights: Weights
    """Where its weights come from."""
    engine: Engine = _default({"vllm": {}})
    """The inference engine; without it vLLM."""
    stack: Stack = _default({"dynamo": {}})
    """What stands before the engines; without it Dynamo."""
    workload: Workload
    """What it is asked."""
    objectives: Objectives = _default({})
    """Latencies to keep."""
    routing: Routing = _default({"kvAware": {}})
    """How requests are spread; without it KV-aware."""
    # A load balancer's rule spreads requests over five target groups; the quota cannot be raised.
    deployments: list[Deployment] = Field(min_length=1, max_length=5)
    """Its sets of workers, side by side behind one route."""


class Spec(Section):
    """The platform."""

    environment: Environment
    """Where it is deployed."""
    network: Network = _default({})
    """How it is reached."""
    cluster: Cluster
    """What runs the containers."""
    # Of 4 KB each in a template of 1 MB; tags and long lists of types may double that.
    pools: list[Pool] = Field(min_length=1, max_length=100)
    """Accelerated nodes."""
    # Each is a rule of the one load balancer, which has a hundred.
    models: list[Model] = Field(min_length=1, max_length=100)
    """Models that are served."""


class Blueprint(Section):
    """A whole blueprint file."""

    api_version: Literal["inference-blueprints/v1alpha1"]
    """Version of this format."""
    kind: Literal["Blueprint"]
    """Always Blueprint."""
    metadata: Metadata
    """What the platform is called."""
    spec: Spec
    """The platform."""
