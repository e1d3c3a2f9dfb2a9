"""Models: weights, engine, workload, and the deployments that serve them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import Discriminator, Field, PrivateAttr, Tag, model_validator

import inference_catalog as published
from inference_blueprints.spec.section import (
    ArgumentValue,
    Choice,
    ContainerImage,
    HuggingFaceRepository,
    Name,
    PublicName,
    Revision,
    S3Prefix,
    SecretArn,
    Section,
    default,
)
from inference_blueprints.spec.sections.elasticity.keys import MeasuredStart, ReplicaRange, ScaledBy
from inference_blueprints.spec.sections.gguf.keys import Gguf
from inference_blueprints.spec.sections.images.keys import Media
from inference_blueprints.spec.sections.models.objectives import (
    LATENCY_NAMES,
    Objective,
    Objectives,
    deadline_objective,
)
from inference_blueprints.spec.sections.models.rates import Rates
from inference_blueprints.spec.sections.stacks.keys import (
    Frontend,
    KvCache,
    Parsers,
    Routing,
    Speculation,
    Stack,
    with_stack_and_routing,
)
from inference_blueprints.spec.sections.workloads.keys import ModelWorkload
from inference_catalog.entry_builder import LazyEntries
from inference_catalog.gguf_types import in_gguf

StoredType = Literal["fp8", "fp8Blocks", "int8", "int4", "nvfp4"]
OnlineType = Literal["fp8", "fp8Blocks"]
KvCacheType = Literal["auto", "bf16", "fp8"]
Task = Literal["generate", "embed", "rerank", "images"]


class Mirror(Section):
    """Copy the model once into the platform's bucket. Workers read it from there."""


class Weights(Section):
    """Source of the weights: exactly one of `huggingFace` and `s3`."""

    hugging_face: HuggingFaceRepository | None = None
    """Repository on the Hugging Face Hub."""
    revision: Revision | None = None
    """Commit, branch or tag of the repository. With a commit, the weights never change."""
    token_secret_arn: SecretArn | None = None
    """ARN of the Secrets Manager secret with the Hub token, for a gated model."""
    mirror: Mirror | None = None
    """Copy the repository once into the platform's bucket. vLLM streams it from there; other engines read the
    node's copy of it. Requires a commit as `revision`."""
    s3: S3Prefix | None = None
    """S3 prefix with the model's files, which are streamed into the GPUs. Requires `catalog`. It is a folder:
    `s3://bucket/llama` has the files of `llama/`, and workers cannot read those of `llama-70b/`."""
    catalog: str | None = None
    """Entry of the model catalogue with the same architecture, if the repository has no entry of its own."""
    type: StoredType | None = None
    """Type of the repository's quantised weights if `catalog` names the model with 16 bits. `fp8` has a scale
    per tensor or channel, `fp8Blocks` per 128 by 128 weights, `int4` per 128 weights (AWQ, GPTQ)."""
    gguf: Gguf | None = None
    """The file of the repository that the engine llamaCpp reads."""

    _added: Mapping[str, published.Model] = PrivateAttr(default_factory=dict)

    @property
    def entries(self) -> Mapping[str, published.Model]:
        """Entries that `catalog` may name: the catalogue's, and those next to the blueprint."""
        return LazyEntries((*published.models(), *published.pipelines(), *self._added), self._entry)

    def _entry(self, name: str) -> published.Model:
        """Return an entry. Those next to the blueprint come before those of the catalogue."""
        found = self._added.get(name) or published.pipelines().get(name)
        return found or published.models()[name]

    @property
    def drafts(self) -> Mapping[str, published.Model]:
        """Drafts that `speculation` may name: the catalogue's, and those next to the blueprint."""
        return {**published.drafts(), **{name: each for name, each in self._added.items() if each.draft}}

    @property
    def entry(self) -> published.Model | None:
        """Shape of the model, with its weights as the repository stores them; None if it is not known."""
        found = self.entries.get(self._entry_name)
        if found and self.gguf:
            return in_gguf(found, self.gguf.type)
        return found.stored_as(self.type) if found and self.type else found

    @property
    def has_own_entry(self) -> bool:
        """Whether its entry is beside the blueprint."""
        return self._entry_name in self._added

    @property
    def _entry_name(self) -> str:
        return self.catalog or self.hugging_face or ""

    def with_entries(self, added: Mapping[str, published.Model]) -> Self:
        """Return a copy that knows further entries.

        added: Entry by name. They come before those of the catalogue.
        """
        copy = self.model_copy()
        copy._added = added
        return copy

    @property
    def in_s3(self) -> bool:
        """Whether workers read the weights from S3."""
        return self.s3 is not None or self.mirror is not None


class EngineImage(Section):
    """Another release of an engine, your own image of it, or a mirror of the published one."""

    name: ContainerImage | None = None
    """Image with its tag, and best with its digest. Under Dynamo, the tag begins with the release. Without
    it, the published image of the release."""
    release: str = Field(min_length=1, max_length=64)
    """Release that it is, or is built on. Its flags are used. On Dynamo, that of Dynamo's image, such as
    `1.6.1`; on `direct` and `llmD` also the engine's own, such as `0.33.0`: one of the catalogue, or one
    that `blueprints engines record` wrote into `engines` next to the blueprint."""


class EngineSection(Section):
    """Settings of an engine."""

    args: dict[str, ArgumentValue] = Field(default_factory=dict, max_length=200)
    """Engine arguments without dashes, such as `seed: 7`. Arguments that the plan sets are errors."""
    env: dict[str, str] = Field(default_factory=dict, max_length=100)
    """Environment variables of the workers, such as `NCCL_DEBUG: INFO`. Variables that the plan sets are
    errors, and so are secrets."""
    image: EngineImage | None = None
    """Image of the workers, or its release alone. Without it, the published one at the release in the
    catalogue."""


class VllmEngine(EngineSection):
    """vLLM."""


class SglangEngine(EngineSection):
    """SGLang."""


class TensorrtLlmEngine(EngineSection):
    """TensorRT-LLM with its PyTorch backend."""


class VllmNeuronEngine(EngineSection):
    """vLLM on AWS's accelerators."""


class LlamaCppEngine(EngineSection):
    """llama.cpp's server."""


class VllmOmniEngine(EngineSection):
    """vLLM-Omni's server, for models that make images from text."""


class Engine(Choice):
    """The inference engine."""

    vllm: VllmEngine | None = None
    """vLLM, at the release in the catalogue."""
    sglang: SglangEngine | None = None
    """SGLang, at the release in the catalogue."""
    tensorrt_llm: TensorrtLlmEngine | None = None
    """TensorRT-LLM, at the release in the catalogue."""
    vllm_neuron: VllmNeuronEngine | None = None
    """vLLM in AWS's image for Inferentia2, Trainium and Trainium2, at the release in the catalogue. This
    project has not run it on these accelerators."""
    llama_cpp: LlamaCppEngine | None = None
    """llama.cpp on the processors of Graviton4, for small models in GGUF, at the release in the catalogue."""
    vllm_omni: VllmOmniEngine | None = None
    """vLLM-Omni for models with `task: images`, at the release in the catalogue. This project has not run
    it."""

    @property
    def arguments(self) -> Mapping[str, ArgumentValue]:
        """Engine arguments in the file, by name without dashes."""
        return self.section.args

    @property
    def section(self) -> EngineSection:
        """The settings of the chosen engine."""
        [section] = [each for name in type(self).model_fields if (each := getattr(self, name)) is not None]
        return cast("EngineSection", section)


#: Stack of each engine that does not run on Dynamo, if the file names none.
#: Target groups of a load balancer's rule. The quota cannot be raised
#: (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html).
TARGET_GROUPS_OF_A_RULE: Final = 5

STACK_OF_ENGINE: Final[Mapping[str, str]] = MappingProxyType(
    {"vllmNeuron": "direct", "llamaCpp": "direct", "vllmOmni": "direct"}
)


class Chat(Section):
    """How the messages of a chat become a prompt."""

    thinking: bool | None = None
    """Whether the model thinks before it answers, if a request does not say. Without it, what the template
    does on its own."""
    template: str | None = Field(default=None, min_length=1, max_length=1024)
    """Chat template in place of the model's own: a Jinja file, by its path from the folder of the blueprint,
    such as `chat.jinja`."""

    _text: str | None = PrivateAttr(default=None)

    def with_text(self, text: str) -> Self:
        """Return a copy that knows the content of its template.

        text: Content of the file.
        """
        copy = self.model_copy()
        copy._text = text
        return copy

    @property
    def text(self) -> str | None:
        """Content of the template; None without one, or if the file was not read."""
        return self._text


class RealTime(Section):
    """Callers that wait only a short time for the whole answer, such as ad servers."""

    deadline_millis: float = Field(gt=0.0, le=600_000.0)
    """How long a caller waits for the whole answer, in milliseconds. Then it goes on with a value of its own,
    the fallback."""
    fallback_percent: float = Field(default=1.0, gt=0.0, le=100.0)
    """Largest share of calls that may end with the fallback, in percent. With 1, the deadline is an objective
    for 99 % of the requests."""

    @property
    def objective(self) -> Objective:
        """The deadline as an objective for whole requests."""
        return deadline_objective(self.deadline_millis, self.fallback_percent)


def _form_of_replicas(value: Any) -> str:
    """Return which form of `replicas` a value has, so that errors are about this form."""
    return "range" if isinstance(value, dict | ReplicaRange) else "number"


Replicas = Annotated[
    Annotated[int, Field(ge=1, le=10_000), Tag("number")] | Annotated[ReplicaRange, Tag("range")],
    Discriminator(_form_of_replicas),
]


class Workers(Section):
    """A set of identical workers."""

    pool: Name
    """Name of the pool on whose nodes the workers run."""
    replicas: Replicas
    """Number of workers, or its range with `scaledBy`."""
    scaled_by: ScaledBy | None = None
    """What decides how many workers of the range run. Required with a range."""
    requests_at_once: int | None = Field(default=None, ge=1, le=100_000)
    """Requests that one worker carries at once within the objectives, as you measured: scaling and the
    capacity shift count with it. Without it, what follows from the latency profile; without a profile, what
    the KV cache holds, and `capacityShift` requires it."""
    measured_start: MeasuredStart | None = None
    """Start times of a worker on a new node that you measured. Elastic workers keep a reserve for it."""
    tensor_parallel_size: int = Field(ge=1, le=64)
    """Number of accelerators over which each layer is split. The engine splits each of AWS's accelerators
    further, over its NeuronCores."""
    pipeline_parallel_size: int = Field(default=1, ge=1, le=16)
    """Number of consecutive stages over which the layers are divided."""
    data_parallel_size: int = Field(default=1, ge=1, le=128)
    """Ranks per worker. Each rank computes attention for its own requests; all share the experts."""
    expert_parallel: bool = False
    """Whether each accelerator holds whole experts instead of a slice of each. For mixtures of experts.
    Experimental for workers that span nodes."""

    @property
    def minimum(self) -> int:
        """Smallest number of workers."""
        return self.replicas.min if isinstance(self.replicas, ReplicaRange) else self.replicas

    @property
    def maximum(self) -> int:
        """Largest number of workers."""
        return self.replicas.max if isinstance(self.replicas, ReplicaRange) else self.replicas

    @property
    def is_lent(self) -> bool:
        """Whether the workers serve batch alone, and the capacity shift sets their number."""
        return self.scaled_by is not None and self.scaled_by.capacity_shift is not None

    @property
    def accelerators(self) -> int:
        """Number of accelerators per worker, on one node or on several whole nodes."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size


class Disaggregated(Section):
    """Separate workers for prefill and decode. The KV cache is transferred between them."""

    prefill: Workers
    """Workers that compute prompts."""
    decode: Workers
    """Workers that write answers."""


class Deployment(Section):
    """A set of workers behind the model's route: exactly one of `aggregated` and `disaggregated`."""

    name: Name
    """Name of the deployment within its model."""
    aggregated: Workers | None = None
    """Prefill and decode in the same workers."""
    disaggregated: Disaggregated | None = None
    """Separate workers for prefill and decode, for long prompts on pools with `efa`. Experimental with
    SGLang."""

    @property
    def workers(self) -> Mapping[tuple[str, ...], Workers]:
        """Sets of workers by their path below the deployment."""
        if self.disaggregated is not None:
            each = self.disaggregated
            return {("disaggregated", "prefill"): each.prefill, ("disaggregated", "decode"): each.decode}
        return {} if self.aggregated is None else {("aggregated",): self.aggregated}

    @property
    def is_lent(self) -> bool:
        """Whether the capacity shift sets the number of its workers, so that it may have none."""
        return all(each.is_lent for each in self.workers.values())


class Model(Section):
    """A model to serve."""

    name: Name
    """Name under which the OpenAI API serves it, and of its stack, host name and objects of Kubernetes."""
    public_name: PublicName | None = None
    """A second name in requests, such as the published one, `Qwen/Qwen3-8B`. Requests and lines of batch jobs
    may have either name. With a front door, names are those of `frontDoor.models`."""
    weights: Weights
    """Source of the weights."""
    task: Task = "generate"
    """What the model does: write text (`generate`), turn each input into a vector (`embed`), score how well
    texts answer a question (`rerank`), or make images from text (`images`). With `embed`, vLLM serves
    `/v1/embeddings` instead of chat and completions; with `rerank`, on the stack `direct`, `/v1/rerank` and
    `/v1/score`; with `images`, vLLM-Omni serves `/v1/images/generations`."""
    engine: Engine = default({"vllm": {}})
    """Inference engine. Without it, vLLM."""
    stack: Stack = default({"dynamo": {}})
    """Serving stack in front of the engines. Without it, Dynamo, or the first stack that runs the engine."""
    workload: ModelWorkload | None = None
    """Requests in real time. Required, unless a queue or a streaming job of the model has a `workload`."""
    objectives: Objectives = default({})
    """Latency objectives, such as `{timeToFirstTokenMs: {p90: 500}}`."""
    priority: int | None = Field(default=None, ge=0, le=100)
    """Who gets workers first on pools with `shared`: the model with the higher number, from 0 to 100.
    Required for models on such a pool, and without effect on other pools."""
    real_time: RealTime | None = None
    """Callers with a deadline. `make run` sends their requests from a Java server and reports fallbacks."""
    rates: Rates | None = None
    """Prices of its requests, of the front door and of batch. Required if a budget limits US dollars."""
    routing: Routing = default({"kvAware": {}})
    """Distribution of requests over workers. Without it, KV-aware, or `leastRequests` on `direct`."""
    kv_cache: KvCache | None = None
    """KV cache outside the accelerators. Without it, only the accelerators hold KV cache."""
    kv_cache_type: KvCacheType = "auto"
    """Type of the KV cache on the accelerators: that of the activations (`auto`), or a smaller one."""
    quantization: OnlineType | None = None
    """Type to which vLLM quantises 16-bit weights while it loads them: `fp8` with a scale per tensor,
    `fp8Blocks` per 128 by 128 weights. Without it, weights are loaded as they are stored."""
    speculation: Speculation | None = None
    """Speculative decoding. Without it, each step computes one token per request."""
    media: Media | None = None
    """Images in requests. Without it, the model reads only text."""
    parsers: Parsers | None = None
    """Parsers of reasoning and tool calls. Without it, the catalogue's for the model."""
    chat: Chat | None = None
    """Thinking by default, and a chat template of your own. Without it, those of the model."""
    deployments: list[Deployment] = Field(min_length=1, max_length=TARGET_GROUPS_OF_A_RULE)
    """Sets of workers. All of them are behind the model's address, except those that a queue or a streaming
    job names under its own `deployments`."""
    frontend: Frontend | None = None
    """Frontends of each deployment. Without it, the library chooses their number and size. Only on Dynamo."""

    @classmethod
    def completed(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Choose the stack by the engine, and the routing by the stack, where the file does not."""
        return with_stack_and_routing(value, STACK_OF_ENGINE)

    @model_validator(mode="before")
    @classmethod
    def _engine_decides_the_stack(cls, value: Any) -> Any:
        return cls.completed(value) if isinstance(value, dict) else value

    @property
    def names(self) -> tuple[str, ...]:
        """Its names in requests: its own, and its public name if it has one."""
        return (self.name,) if self.public_name is None else (self.name, self.public_name)

    @property
    def deciding_objectives(self) -> tuple[Objective, ...]:
        """The objectives that decide how many requests a worker carries, and so all that scales by them.

        The deadline of `realTime` is one of them if the model states percentiles, such as `requestMs`. With
        the short keys of earlier releases, or without objectives, it only judges: targets stay as they were.
        """
        stated = self.objectives.stated
        decides = any(each.path[0] in LATENCY_NAMES for each in stated)
        return (*stated, self.real_time.objective) if self.real_time and decides else stated

    @property
    def stated_objectives(self) -> tuple[Objective, ...]:
        """Every stated objective: those of `objectives`, and the deadline of `realTime`."""
        deadline = () if self.real_time is None else (self.real_time.objective,)
        return (*self.objectives.stated, *deadline)

    @property
    def may_have_no_worker(self) -> bool:
        """Whether batch alone uses it, and all of its workers may go."""
        workers = [each for deployment in self.deployments for each in deployment.workers.values()]
        return all(each.is_lent and not each.minimum for each in workers)

    @property
    def only_reads(self) -> bool:
        """Whether the model answers with numbers: it writes no text and makes no images."""
        return self.task in ("embed", "rerank")

    @property
    def makes_images(self) -> bool:
        """Whether the model makes images from text."""
        return self.task == "images"

    @property
    def draft(self) -> published.Model | None:
        """The model's draft; None without one, or if it is not known."""
        eagle = self.speculation.eagle if self.speculation else None
        return self.weights.drafts.get(eagle.hugging_face) if eagle else None
