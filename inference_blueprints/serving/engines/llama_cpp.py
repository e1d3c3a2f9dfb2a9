"""llama.cpp: the arguments of a worker, which is one ``llama-server`` with all processors of its node.

Flags are those of ``common/arg.cpp`` at the release that the catalogue pins; functions and files named here
are of the same release. One server per node reads the memory at the full bandwidth, and needs the weights
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.engines.serving_engine import (
    ArgumentNames,
    OwnServer,
    RequestCounter,
    ServingEngine,
)
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.nodes.node_share import node_share
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue
from inference_blueprints.serving.weights_loading import weights_environment
from inference_blueprints.spec.types import Chat
from inference_catalog import Accelerator
from inference_catalog.hardware import processor_of

#: Where the server stores the file that it downloads: on the node's disk, until the pod ends.
MODEL_FILE = "/cache/model.gguf"
_HUB = "https://huggingface.co"
# Default of ``--batch-size``: tokens of a prompt that one call of ``llama_decode`` takes.
_BATCH_TOKENS = 2048
# Default of ``--ubatch-size``: tokens that are computed at once, for which the buffers are made.
_UBATCH_TOKENS = 512
# ``llama_context`` rounds the tokens of a sequence up to this (``GGML_PAD(cparams.n_ctx_seq, 256)``).
_CONTEXT_STEP = 256
# More sequences make each step slower for all of them; further requests wait in the server.
_MAX_SEQUENCES = 32
# The program, its HTTP threads and allocator: not measured on Graviton, so a round allowance.
_RESERVED_BYTES = 1024**3
_BYTES_PER_NUMBER = 4
_DOWNLOADED = "set weights.huggingFace and weights.gguf"
_PROCESSORS = "it follows from the instance type"
_SIZED = "it is the longest request times 'parallel'"
_NOT_PLANNED = "the plan counts no memory for it"
_REACHED = "requests arrive at the address and port that the plan sets"
_KEYS = "callers have no key, and a key would be readable in the process's arguments"
_ALWAYS = "it has the same value for every model"
_FILES = "requests and the server read no files and run no programs of the node"


class LlamaCpp(ServingEngine):
    """llama.cpp."""

    manufacturer = "cpu"
    argument_names = ArgumentNames(
        length="",
        sequences="parallel",
        step_tokens="batch-size",
        block_size="",
        memory_share="",
        kv_cache_type="cache-type-k",
        kv_cache_types=("f16", "bf16", "q8_0"),
        without_prefix_cache=("cache-prompt", False),
        stretched_context=None,
    )
    kv_cache_types = MappingProxyType({"bf16": "bf16"})
    own_server = OwnServer(
        program="llamaCppServer",
        command=("/app/llama-server",),
        # ``tools/server/server-task.cpp``. It counts no requests: calls of ``llama_decode`` grow with them.
        running="llamacpp:requests_processing",
        waiting="llamacpp:requests_deferred",
        requests=RequestCounter("llamacpp:n_decode_total"),
        has_python=False,  # ``.devops/cpu.Dockerfile``, stage ``server``
        # SIGTERM ends the loop of the server at once (``shutdown_handler`` in ``tools/server/server.cpp``).
        finishes_answers=False,
    )
    block_size = 1

    def step_tokens(self, accelerator: Accelerator) -> int:  # noqa: ARG002 -- a constant
        return _BATCH_TOKENS

    def kv_cache_type(self, resolved: ResolvedWorkers) -> str:
        chosen = super().kv_cache_type(resolved)
        return "f16" if chosen == "auto" else chosen

    def limited_cache(self, memory: MemoryEstimate, resolved: ResolvedWorkers) -> MemoryEstimate:
        """Return how the memory of the worker's pod is used: a node without devices has no other.

        ::

            total      = memory that the pod may use
            activation = 4 bytes * 512 tokens * (vocabulary + 8 * hidden size + 2 * feed-forward width)
            reserved   = 1 GiB
        """
        shape = resolved.device_shape
        total = node_share(resolved.types, 1).memory_mib * 1024**2
        width = shape.vocabulary_size + 8 * shape.hidden_size + 2 * shape.feed_forward_size
        activation = _BYTES_PER_NUMBER * _UBATCH_TOKENS * width
        kv_cache = total - shape.weight_bytes - activation - _RESERVED_BYTES
        return replace(
            memory,
            total_bytes=total,
            weights_bytes=shape.weight_bytes,
            activation_bytes=activation,
            reserved_bytes=_RESERVED_BYTES,
            kv_cache_bytes=kv_cache,
        )

    def places(self, resolved: ResolvedWorkers, kv_tokens: int, length: int) -> int | None:  # noqa: ARG002
        """Return the sequences that fit, each with the longest request: none can take another's memory."""
        return max(1, min(_MAX_SEQUENCES, kv_tokens // max(1, _context(length))))

    def planned_arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
        weights, cache_type = resolved.model.weights, self.kv_cache_type(resolved)
        threads = _cores(resolved)
        file = weights.gguf.file if weights.gguf else ""
        return {
            "model": MODEL_FILE,
            "model-url": f"{_HUB}/{weights.hugging_face}/resolve/{weights.revision or 'main'}/{file}",
            # A set, of which ``/v1/models`` has the first in order as ``id``, and all as ``aliases``
            # (``tools/server/server-context.cpp``). Requests may have any name.
            "alias": ",".join(resolved.model.names),
            "threads": threads,
            "threads-batch": threads,
            **({"numa": "distribute"} if _sockets(resolved) > 1 else {}),
            # Weights in memory of the program, which the kernel cannot drop as it can pages of a file.
            "load-mode": "none",
            "parallel": sizing.max_num_seqs,
            "ctx-size": sizing.max_num_seqs * _context(sizing.max_model_len),
            "kv-unified": False,
            "cont-batching": True,
            "batch-size": sizing.max_num_batched_tokens,
            "cache-type-k": cache_type,
            "cache-type-v": cache_type,
            "cache-ram": 0,
            "ctx-checkpoints": 0,
            "jinja": True,
            "metrics": True,
            "ui": False,
        }

    def arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> dict[str, Argument]:
        """Return the arguments; the type of values is that of keys, also if the user sets it."""
        arguments = super().arguments(resolved, sizing)
        return arguments | {"cache-type-v": arguments["cache-type-k"]}

    def chat_arguments(self, chat: Chat) -> Mapping[str, Argument]:
        """Return whether the template thinks, and the template itself, which needs no file in the image.

        ``--reasoning`` is the template's ``enable_thinking``, and a request's own ``chat_template_kwargs``
        come first (``oaicompat_chat_params_parse`` in ``tools/server/server-common.cpp``).
        """
        arguments: dict[str, Argument] = {}
        if chat.thinking is not None:
            arguments["reasoning"] = "on" if chat.thinking else "off"
        if chat.text is not None:
            arguments["chat-template"] = chat.text
        return arguments

    def server_arguments(
        self,
        arguments: Mapping[str, Argument],
        port: int,
        stream_seconds: int,  # noqa: ARG002 -- the signal comes after the longest answer
    ) -> tuple[str, ...]:
        return command_line({**arguments, "host": "0.0.0.0", "port": port})  # noqa: S104 -- in its own container

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        return weights_environment(resolved.model.weights)


def bound_tokens_per_second(resolved: ResolvedWorkers) -> float | None:
    """Return an upper bound of the tokens per second of one request while it decodes; None if unknown.

    Each token reads the active weights once, and the memory of the instance has a peak bandwidth. Real speeds
    are below it.
    """
    kind = resolved.types[0]
    processor = processor_of(kind.family)
    if processor is None or resolved.accelerator.manufacturer != LlamaCpp.manufacturer:
        return None
    shape = resolved.device_shape
    active = shape.weight_bytes * shape.active_parameters_billion / shape.parameters_billion
    slowest = min(processor.bytes_per_second(each.vcpu) for each in resolved.types)
    return slowest / active


def _context(length: int) -> int:
    """Return the tokens that the server keeps for a sequence."""
    return -(-length // _CONTEXT_STEP) * _CONTEXT_STEP


def _cores(resolved: ResolvedWorkers) -> int:
    """Return the physical cores of the smallest type of the pool; the checks refuse types that differ."""
    return min(
        processor.cores(each.vcpu) if (processor := processor_of(each.family)) else each.vcpu
        for each in resolved.types
    )


def _sockets(resolved: ResolvedWorkers) -> int:
    """Return the sockets of the largest type of the pool, each with its own memory."""
    return max(
        processor.sockets(each.vcpu) if (processor := processor_of(each.family)) else 1
        for each in resolved.types
    )
