"""Models: weights, engine, workload, and the deployments that serve them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from inference_blueprints.spec.types.kv_cache import KvCache
from inference_blueprints.spec.types.media import Media
from inference_blueprints.spec.types.section import (
    ArgumentValue,
    Choice,
    HuggingFaceRepository,
    Name,
    Revision,
    S3Prefix,
    SecretArn,
    Section,
    default,
)

PrefixScorer = Literal["approximate", "precise"]


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


class EngineSection(Section):
    """An engine's own settings."""

    args: dict[str, ArgumentValue] = Field(default_factory=dict, max_length=200)
    """Engine arguments without dashes, such as `seed: 7`; those that the plan owns are errors."""


class VllmEngine(EngineSection):
    """vLLM."""


class SglangEngine(EngineSection):
    """SGLang."""


class TensorrtLlmEngine(EngineSection):
    """TensorRT-LLM with its PyTorch backend."""


class Engine(Choice):
    """The inference engine."""

    vllm: VllmEngine | None = None
    """vLLM at the release that the catalogue pins."""
    sglang: SglangEngine | None = None
    """SGLang at the release that the catalogue pins."""
    tensorrt_llm: TensorrtLlmEngine | None = None
    """TensorRT-LLM at the release that the catalogue pins."""

    @property
    def arguments(self) -> Mapping[str, ArgumentValue]:
        """Engine arguments that the file gives, by name without dashes."""
        [section] = [each for each in (self.vllm, self.sglang, self.tensorrt_llm) if each is not None]
        return section.args


class DynamoStack(Section):
    """NVIDIA Dynamo's frontend, router and operator."""


class LlmDStack(Section):
    """llm-d's router before stock vLLM servers."""

    prefix_scorer: PrefixScorer = "approximate"
    """How the router knows what a worker has cached: `approximate` by what it sent there, `precise` by the
    workers' own events."""


class Stack(Choice):
    """What stands before the engines."""

    dynamo: DynamoStack | None = None
    """NVIDIA Dynamo."""
    llm_d: LlmDStack | None = None
    """llm-d; runs vLLM, routes KV-aware, on EKS."""


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
    """Mean prompt length in tokens, those of its images included."""
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


class Workers(Section):
    """Workers that are alike."""

    pool: Name
    """Pool whose nodes the workers run on."""
    replicas: int = Field(ge=1, le=10_000)
    """Workers."""
    tensor_parallel_size: int = Field(ge=1, le=64)
    """Accelerators over which each layer is split."""
    pipeline_parallel_size: int = Field(default=1, ge=1, le=16)
    """Stages of layers, one after the other, over which each worker is split besides."""
    data_parallel_size: int = Field(default=1, ge=1, le=128)
    """Ranks of a worker that compute attention for requests of their own and share the experts."""
    expert_parallel: bool = False
    """Whether an accelerator holds whole experts, and not a slice of each; for mixtures of experts."""

    @property
    def accelerators(self) -> int:
        """Accelerators of one worker, on one node or on several whole ones."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size


class Disaggregated(Section):
    """Prefill and decode in workers of their own; the KV cache moves from one to the other."""

    prefill: Workers
    """Workers that compute prompts."""
    decode: Workers
    """Workers that write answers."""


class Deployment(Section):
    """One set of workers behind the model's route: exactly one of `aggregated` and `disaggregated`."""

    name: Name
    """Name of the deployment within its model."""
    aggregated: Workers | None = None
    """Prefill and decode in the same workers."""
    disaggregated: Disaggregated | None = None
    """Prefill and decode in workers of their own; for long prompts on pools with `efa`."""

    @property
    def workers(self) -> Mapping[tuple[str, ...], Workers]:
        """The sets of workers, by their place below the deployment."""
        if self.disaggregated is not None:
            each = self.disaggregated
            return {("disaggregated", "prefill"): each.prefill, ("disaggregated", "decode"): each.decode}
        return {} if self.aggregated is None else {("aggregated",): self.aggregated}


class Model(Section):
    """A model that is served."""

    name: Name
    """Name under which the OpenAI API serves it."""
    weights: Weights
    """Where its weights come from."""
    engine: Engine = default({"vllm": {}})
    """The inference engine; without it vLLM."""
    stack: Stack = default({"dynamo": {}})
    """What stands before the engines; without it Dynamo."""
    workload: Workload
    """What it is asked."""
    objectives: Objectives = default({})
    """Latencies to keep."""
    routing: Routing = default({"kvAware": {}})
    """How requests are spread; without it KV-aware."""
    kv_cache: KvCache | None = None
    """Where KV cache is kept beside the accelerators; without it nowhere."""
    media: Media | None = None
    """Images in requests; without it the model reads text alone."""
    # A load balancer's rule spreads requests over five target groups; the quota cannot be raised.
    deployments: list[Deployment] = Field(min_length=1, max_length=5)
    """Its sets of workers, side by side behind one route."""
