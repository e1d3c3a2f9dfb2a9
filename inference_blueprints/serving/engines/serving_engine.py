"""The base class of inference engines, and the names of their arguments."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import inference_catalog as catalog
from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.node_copies import (
    kernel_environment,
    reads_node_copy,
    uses_node_cache,
)
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import EnginePort, EnvironmentValue
from inference_blueprints.serving.weights_loading import weights_environment
from inference_blueprints.spec.types import ArgumentValue, Chat, Model
from inference_catalog import Accelerator
from inference_catalog.cache_rules import CacheRule, CacheUse
from inference_catalog.model import DraftMethod
from inference_contracts.records import dataclass


def json_argument(value: Mapping[str, object]) -> str:
    """Return an argument in JSON, the same each time."""
    # The text of a value that is not valid is undecidable, as is each use of it.
    return json.dumps(dict(value), default=str, separators=(",", ":"))


def json_object(arguments: Mapping[str, ArgumentValue], name: str) -> Mapping[str, object]:
    """Return the object that an argument in JSON gives; an empty one if it gives none."""
    try:
        value = json.loads(str(arguments.get(name, "")))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def changed_config(arguments: Mapping[str, ArgumentValue]) -> Mapping[str, object]:
    """Return what arguments change in the repository's config.json, with the keys of its model of language.

    vLLM has an argument for it, SGLang another.
    """
    changed = {**json_object(arguments, "hf-overrides"), **json_object(arguments, "json-model-override-args")}
    text = changed.get("text_config")
    return {**changed, **text} if isinstance(text, dict) else changed


@dataclass(frozen=True, slots=True)
class ChosenKernels:
    """Kernels of attention that a user chose by an argument."""

    argument: str
    """The argument's name."""
    given: str
    """The name as it was given."""
    name: str
    """The engine's name."""
    group: str = ""
    """The engine's name of the layers for which they are; empty for all."""


# The server of an engine that answers the OpenAI API itself, without a router in front of it.


@dataclass(frozen=True, slots=True)
class RequestCounter:
    """The Prometheus counter of the requests that a worker received."""

    name: str
    """Full name of its samples."""
    label: str = ""
    """The label of the samples that count, such as ``endpoint="generate"``; empty for all."""


@dataclass(frozen=True, slots=True)
class ParserFlags:
    """Arguments that name the parsers of answers."""

    program: str
    """The program that parses, by the catalogue's name."""
    reasoning: str
    tool_call: str
    """`reasoning`, `tool_call`: Names of the arguments without dashes."""

    @property
    def keys(self) -> Mapping[str, str]:
        """Argument by the key of the blueprint's ``parsers``."""
        return MappingProxyType({"reasoning": self.reasoning, "toolCall": self.tool_call})


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """How an engine's own server is started, and what it reports."""

    program: str
    """Its name in the tables of metrics, such as ``vllmServer``."""
    command: tuple[str, ...]
    """Program and its fixed arguments."""
    running: str
    """Gauges of the requests that a worker computes."""
    waiting: str
    """Gauges of those that wait in it."""
    requests: RequestCounter
    """How a worker counts requests."""
    latency: str | None = None
    """Histogram of the time to the first token, without ``_bucket``. None if the server reports none."""
    parsers: ParserFlags | None = None
    """Arguments that name the parsers of answers. None if the server has no such arguments."""
    health_path: str = "/health"
    """Path that answers 200 once the model is loaded."""
    has_python: bool = True
    """Whether its image has Python, in which programs of a target can run."""
    finishes_answers: bool = True
    """Whether the server ends its open answers after SIGTERM, before it exits."""


@dataclass(frozen=True, slots=True)
class ArgumentNames:
    """An engine's names, without dashes, of the arguments that the plan uses and a user may set.

    A name is empty if the engine has no such argument.
    """

    length: str
    """Tokens of the longest request, prompt and answer."""
    sequences: str
    """Number of sequences that run at once."""
    step_tokens: str
    """Tokens of one step."""
    block_size: str
    """Tokens of a block of the KV cache."""
    memory_share: str
    """The engine's share of the device's memory, as the engine defines it: above 0 and at most 1."""
    kv_cache_type: str
    """Data type of the KV cache."""
    kv_cache_types: tuple[str, ...]
    """Values of that argument whose size is known."""
    without_prefix_cache: tuple[str, ArgumentValue]
    """Argument and value that switch the prefix cache off."""
    state_type: str = ""
    recurrent_type: str = ""
    """`state_type`, `recurrent_type`: Data type of the states of Mamba and of linear attention, and that of
    the part that is no convolution."""
    stretched_context: str | None = None
    """Argument that lets requests be longer than the model's published context. None if there is none."""

    @property
    def counts(self) -> tuple[str, ...]:
        """Arguments that are whole numbers above 0."""
        return tuple(filter(None, (self.length, self.sequences, self.step_tokens, self.block_size)))

    def sizing_arguments(self, sizing: Sizing) -> dict[str, ArgumentValue]:
        """Return the arguments that set a worker's sizes."""
        return {
            self.block_size: sizing.block_size,
            self.length: sizing.max_model_len,
            self.sequences: sizing.max_num_seqs,
            self.step_tokens: sizing.max_num_batched_tokens,
            self.memory_share: sizing.memory_share,
        }


@dataclass(frozen=True, slots=True)
class TransferCounters:
    """Prometheus metrics of a worker about KV cache that moves between prefill and decode."""

    moved: tuple[str, ...] = ()
    """Counters of bytes that were moved. Empty if the engine counts none."""
    failed: tuple[str, ...] = ()
    """Counters of transfers that failed. Empty if the engine counts none."""
    seconds: str | None = None
    transfers: str | None = None
    """`seconds`, `transfers`: Time of all transfers, and their number, where each transfer is that of one
    accelerator. None if the engine reports no time, or only that of whole requests."""


@dataclass(frozen=True, slots=True)
class ChosenDraft:
    """The draft of a model: how it guesses, and its repository on the Hub."""

    method: DraftMethod
    repository: str
    revision: str | None


def find_draft(model: Model) -> ChosenDraft | None:
    """Return the draft of a model; None without one, or if it is not known."""
    eagle = model.speculation.eagle if model.speculation else None
    if eagle is None or model.draft is None or model.draft.draft is None:
        return None
    return ChosenDraft(model.draft.draft.method, eagle.hugging_face, eagle.revision)


#: Variable with the path of a chat template, for servers that read it from a file.
TEMPLATE_FILE = "CHAT_TEMPLATE"


def thinking_names(*, on: bool) -> Mapping[str, object]:
    """Return the switch of thinking by each name that templates have for it.

    Those of Dynamo's frontend (``frontend/thinking.py`` of ai-dynamo 1.6.1): ``enable_thinking`` of Qwen,
    GLM, Gemma and Nemotron, ``thinking`` of DeepSeek and Kimi, ``thinking_mode`` of MiniMax.
    """
    return {"enable_thinking": on, "thinking": on, "thinking_mode": "enabled" if on else "disabled"}


#: End of the tags of Dynamo's images with libfabric. They were documented as experimental for several
#: releases since 1.2 ("Release Artifacts", docs.nvidia.com/dynamo), but not for every patch release.
DYNAMO_EFA_VARIANT = "-efa"


class ServingEngine(ABC):
    """An inference engine: its features, and the arguments and environment of its workers.

    A subclass defines `argument_names`, `block_size`, `step_tokens` and `planned_arguments`. It overrides a
    default only where the engine differs from it.
    """

    manufacturer: str = "nvidia"
    """Manufacturer of the accelerators that the engine supports, as in the catalogue."""

    transfer_counters: TransferCounters = TransferCounters()
    """How the engine's workers count KV cache that moves between prefill and decode."""

    kv_cache_types: Mapping[str, str] = MappingProxyType({"fp8": "fp8"})
    """The engine's names of the types of KV cache that the blueprint's ``kvCacheType`` may name."""

    online_types: Mapping[str, str] = MappingProxyType({})
    """The engine's names of the types to which it quantises weights while it loads them."""

    speculation_methods: frozenset[str] = frozenset()
    """Keys of the blueprint's ``speculation`` that the engine supports."""

    counts_draft_as_layers: bool = False
    """Whether the engine sizes the KV cache of a draft's layer like that of a layer of the model."""

    extends_draft_context: bool = True
    """Whether a draft whose configuration allows fewer tokens than the model's serves all of the model's."""

    cache_rule: CacheRule = "every token"
    """Whose rules say how much of the KV cache a request takes."""

    dynamo_name: str | None = None
    """Dynamo's name of the engine, which is also that of its worker's Python module. None if Dynamo does not
    run it."""

    fetches_from_any_host: bool = False
    """Whether its workers under Dynamo fetch images from any public host."""

    own_server: OwnServer | None = None
    """The engine's own server of the OpenAI API, for the stack ``direct``. None if it has none."""

    needs_user_name: bool = False
    """Whether it imports PyTorch in an own image that does not list the user of the pods."""

    cache_use: str | None = None
    """Gauge of the used share of a worker's KV cache. None if the engine reports none."""

    totals_over_ranks: frozenset[str] = frozenset()
    """Names of the arguments whose value the engine divides among the data parallel ranks of a worker."""

    kernel_folders: Mapping[str, str] = MappingProxyType({})
    """Variables with the folders of kernels that the engine compiles, by the name of the folder, in addition
    to those of CUDA, PyTorch, Triton and FlashInfer."""

    gathers_heads: bool = False
    """Whether a decode device may receive its KV heads from several prefill devices."""

    kv_cache_tiers: frozenset[str] = frozenset()
    """Keys of the blueprint's ``kvCache`` that the engine supports."""

    host_cache_reserve_mib: int = 0
    """Memory of the node that must stay free beside the KV cache in host memory, in MiB."""

    staged_transfer_roles: frozenset[WorkerRole] = frozenset()
    """Roles whose workers may have several pipeline stages when KV cache moves between prefill and decode."""

    compile_seconds: int = 0
    """Time that a worker may compile if it finds no compiled program, in seconds. 0 if it compiles none."""

    efa_variant: str = ""
    """End of the tag of the image with libfabric, for pools with EFA. Empty if there is no such image."""

    partition_variable: str = ""
    """Variable with the layers of each pipeline stage, separated by commas. Empty if there is none."""

    spans_nodes: bool = False
    """Whether a worker may span nodes."""

    ranks_of_one_device: bool = False
    """Whether each data parallel rank is a single device."""

    @property
    @abstractmethod
    def argument_names(self) -> ArgumentNames:
        """The engine's names of the arguments that the plan uses."""

    @property
    @abstractmethod
    def block_size(self) -> int:
        """Tokens of a block of the KV cache, unless the user or the model's kernels need another size."""

    def planned_block(self, resolved: ResolvedWorkers) -> int:  # noqa: ARG002 -- engines with other sizes
        """Return the tokens of a block that the plan sets, which the kernels of this model take."""
        return self.block_size

    @abstractmethod
    def step_tokens(self, accelerator: Accelerator) -> int:
        """Return the engine's default number of tokens per step on a device."""

    @abstractmethod
    def planned_arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
        """Return a worker's arguments by name without dashes, before the user's are added."""

    def arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> dict[str, Argument]:
        """Return a worker's arguments by name without dashes: the planned ones, overridden by the user's."""
        options = self._option_arguments(resolved)
        return {**self.planned_arguments(resolved, sizing), **options, **resolved.model.engine.arguments}

    def server_arguments(
        self, arguments: Mapping[str, Argument], port: int, stream_seconds: int
    ) -> tuple[str, ...]:
        """Return the command line of `own_server`, after its command.

        arguments: The worker's arguments by name without dashes, with those of the user.
        port: Port of the API, on every address.
        stream_seconds: Longest time of an answer, which should run to its end after SIGTERM.
        """
        raise NotImplementedError(f"{type(self).__name__} has no server of its own")

    def chat_arguments(self, chat: Chat) -> Mapping[str, Argument]:
        """Return the arguments with which `own_server` writes prompts as a model's section `chat` says."""
        raise NotImplementedError(f"{type(self).__name__} has no server of its own")

    def chat_environment(self, chat: Chat) -> Mapping[str, EnvironmentValue]:  # noqa: ARG002 -- of few engines
        """Return the variables of the files that `chat_arguments` name; none if they hold the text itself."""
        return {}

    def chosen_kernels(self, arguments: Mapping[str, ArgumentValue]) -> Iterator[ChosenKernels]:
        """Yield the kernels of attention that the user chose."""
        names = ("attention-backend", "prefill-attention-backend", "decode-attention-backend")
        for each in names:
            if each in arguments:
                yield ChosenKernels(each, str(arguments[each]), str(arguments[each]))

    def kv_cache_type(self, resolved: ResolvedWorkers) -> str:
        """Return the engine's name of the type of the KV cache: the user's argument, else ``kvCacheType``."""
        planned = self.kv_cache_types.get(resolved.model.kv_cache_type, "auto")
        return str(resolved.model.engine.arguments.get(self.argument_names.kv_cache_type, planned))

    def held_model(self, resolved: ResolvedWorkers) -> catalog.Model:
        """Return the model as devices hold it, with the layers of its draft."""
        shape, draft = resolved.device_shape, resolved.model.draft
        return shape.with_draft(draft, cached_alike=self.counts_draft_as_layers) if draft else shape

    def used_cache(self, resolved: ResolvedWorkers, step_tokens: int) -> CacheUse:
        """Return how the engine uses its cache, for the memory of a request.

        step_tokens: Most tokens that the engine computes in one step.
        """
        arguments, names = resolved.model.engine.arguments, self.argument_names
        without, value = names.without_prefix_cache
        block = arguments.get(names.block_size)
        speculation, shape = resolved.model.speculation, resolved.device_shape
        has_states = any(each.kind == "state" for each in shape.cached_layers)
        return CacheUse(
            rule=self.cache_rule,
            tensor_parallel_size=resolved.tensor_parallel_size,
            kv_type=self.kv_cache_type(resolved),
            capability=resolved.accelerator.compute_capability or "",
            block=block
            if isinstance(block, int)
            else self.planned_block(resolved),  # another rule reports it
            in_flight_tokens=self.steps_at_a_time(resolved) * step_tokens,
            prefix_caching=resolved.model.task != "embed" and arguments.get(without) != value,
            frees_windows=self.frees_windows(resolved),
            guessed_tokens=speculation.tokens if speculation and has_states else 0,
            state_type=str(arguments.get(names.state_type, "auto")),
            recurrent_type=str(arguments.get(names.recurrent_type, "auto")),
            whole_experts=resolved.workers.expert_parallel,
            kernels=next((each.name for each in self.chosen_kernels(arguments) if not each.group), ""),
        )

    def steps_at_a_time(self, resolved: ResolvedWorkers) -> int:
        """Return the steps that run at a time: one per pipeline stage."""
        return resolved.pipeline_parallel_size

    def _option_arguments(self, resolved: ResolvedWorkers) -> dict[str, Argument]:
        """Return the arguments of the model's options: type of the KV cache, quantisation, speculation."""
        model = resolved.model
        options: dict[str, Argument] = {}
        if model.kv_cache_type in self.kv_cache_types:
            options[self.argument_names.kv_cache_type] = self.kv_cache_types[model.kv_cache_type]
        if model.quantization and model.quantization in self.online_types:
            options["quantization"] = self.online_types[model.quantization]
        if model.speculation and model.speculation.chosen in self.speculation_methods:
            options |= self.speculation_arguments(model)
        return options

    def speculation_arguments(self, model: Model) -> Mapping[str, Argument]:
        """Return the arguments of speculative decoding by one of ``speculation_methods``."""
        raise NotImplementedError(f"{type(self).__name__} supports no speculation for {model.name}")

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        """Return the environment variables that the engine itself needs: by default those of its files."""
        folders = kernel_environment(self.kernel_folders) if uses_node_cache(resolved) else {}
        return {
            **({} if reads_node_copy(resolved) else weights_environment(resolved.model.weights)),
            **folders,
        }

    def ports(self, resolved: ResolvedWorkers) -> tuple[EnginePort, ...]:  # noqa: ARG002 -- subclasses use it
        """Return the ports with fixed numbers that a worker opens: by default none."""
        return ()

    def memory_share(self, memory: MemoryEstimate, device_bytes: int) -> float:
        """Return the memory share to pass to the engine; by default, its part of the whole device.

        memory: How the plan fills the device.
        """
        return memory.total_bytes / device_bytes

    def utilization(self, share: float, whole: MemoryEstimate) -> float:  # noqa: ARG002 -- subclasses use it
        """Return the filled part of the device for a given memory share; the inverse of `memory_share`.

        share: The memory share that is passed to the engine.
        whole: The estimate for a device that is filled to the last byte.
        """
        return share

    def limited_cache(self, memory: MemoryEstimate, resolved: ResolvedWorkers) -> MemoryEstimate:  # noqa: ARG002
        """Return the estimate with the engine's own limit of the KV cache: by default, as it is."""
        return memory

    def places(self, resolved: ResolvedWorkers, kv_tokens: int, length: int) -> int | None:  # noqa: ARG002
        """Return how many sequences have a part of the cache of their own; None if they share all of it.

        kv_tokens: Tokens that the KV cache holds.
        length: Tokens of the longest request.
        """
        return None

    def frees_windows(self, resolved: ResolvedWorkers) -> bool:  # noqa: ARG002 -- subclasses use it
        """Whether layers with a sliding window keep only the window of a request."""
        return False

    def usable_cache_share(self, resolved: ResolvedWorkers) -> float:  # noqa: ARG002 -- subclasses use it
        """Return the part of the KV cache in host memory and on disk that holds distinct tokens."""
        return 1
