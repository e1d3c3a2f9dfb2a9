"""vLLM on AWS's accelerators: the arguments and environment of a worker.

There are two ways, each with its own image of AWS: the vLLM Neuron plug-in on Trainium2, and vLLM with NxD
Inference on Inferentia2 and Trainium. ``neuron.json`` in the catalogue has their limits with the sources.
Documents named here are those of aws-neuron/aws-neuron-sdk at the commit in that file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.engines.serving_engine import ArgumentNames, ServingEngine, json_argument
from inference_blueprints.serving.engines.vllm import VLLM_SERVER, serve_arguments
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.node_copies import model_location, reads_node_copy
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue
from inference_catalog import Accelerator
from inference_catalog.neuron import NeuronRoute, neuron_route

#: Folder of a worker's compiled artefacts.
ARTEFACTS_FOLDER = "/artefacts"
#: Cores of Trainium2 that one logical core groups (``logical-neuroncore-config.rst``: 2 is the default). The
#: compiler must use the same number, so it is a part of the key of artefacts.
LOGICAL_CORE_CONFIG = 2

# Prefill in segments of one size, which is also the only prefill bucket (``reference-configuration.md``,
# "Complete configuration example" and "Prefix caching constraints": 512 to 8192, both lists identical).
_SEGMENT_TOKENS = 2048
# NxD Inference computes a whole prompt at once (``max_context_length=max_model_len``).
_PROMPT_TOKENS = 8192
# ``tutorial-llama3-70b.md``: a first compilation of 15 to 20 minutes exceeds the default of 600 s.
_COMPILATION_SECONDS = 1200
_BLOCK_TOKENS = 32
_SIZED = "it follows from max-num-seqs, max-model-len and the memory of the cores"
_COMPILED = "the plan chooses it, because compiled artefacts depend on it"


class VllmNeuron(ServingEngine):
    """vLLM in AWS's images for Neuron."""

    manufacturer = "aws"
    argument_names = ArgumentNames(
        length="max-model-len",
        sequences="max-num-seqs",
        step_tokens="max-num-batched-tokens",
        block_size="block-size",
        memory_share="gpu-memory-utilization",
        kv_cache_type="kv-cache-dtype",
        kv_cache_types=("auto", "fp8"),
        without_prefix_cache=("enable-prefix-caching", False),
    )
    # Three times the longest published time: 20 minutes for Llama 3.3 70B (``tutorial-llama3-70b.md``).
    compile_seconds = 3600
    # Before 0.24, ``vllm serve`` has no --shutdown-timeout, so answers end before SIGTERM.
    own_server = replace(VLLM_SERVER, finishes_answers=False)
    cache_use = "vllm:kv_cache_usage_perc"
    # The plug-in's default (``reference-configuration.md``); the planned size is an argument.
    block_size = _BLOCK_TOKENS

    def server_arguments(
        self,
        arguments: Mapping[str, Argument],
        port: int,
        stream_seconds: int,
    ) -> tuple[str, ...]:
        model, options = serve_arguments(arguments, port, stream_seconds)
        del options["shutdown-timeout"]
        return (model, *command_line(options))

    def step_tokens(self, accelerator: Accelerator) -> int:
        route = neuron_route(accelerator)
        return _SEGMENT_TOKENS if route and route.prefix_caching else _PROMPT_TOKENS

    def limited_cache(self, memory: MemoryEstimate, resolved: ResolvedWorkers) -> MemoryEstimate:
        """Return the estimate with the plug-in's cap (``features-guide.md``, Memory management)."""
        route = neuron_route(resolved.accelerator)
        if route is None:
            return memory
        kv_cache = min(memory.kv_cache_bytes, int(memory.total_bytes * route.kv_share))
        return replace(memory, kv_cache_bytes=kv_cache)

    def places(self, resolved: ResolvedWorkers, kv_tokens: int, length: int) -> int | None:
        """Return the sequences for which NxD Inference has room, each with the longest request.

        NxD Inference allocates ``max_num_seqs`` times ``max_model_len`` tokens (``vllm-user-guide-v1.rst``,
        Scheduling and K/V Cache).
        """
        route = neuron_route(resolved.accelerator)
        return None if route is None or route.block_size else max(1, kv_tokens // max(1, length))

    def planned_arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
        weights = resolved.model.weights
        planned: dict[str, Argument] = {"model": model_location(resolved)}
        planned["served-model-name"] = resolved.model.names
        if weights.revision and not reads_node_copy(resolved):
            planned["revision"] = weights.revision
        planned["tensor-parallel-size"] = resolved.tensor_parallel_size
        route = neuron_route(resolved.accelerator)
        return planned | (
            _plug_in_arguments(self.argument_names, resolved, sizing, route)
            if route and route.prefix_caching
            else _nxd_arguments(sizing)
        )

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        environment: dict[str, EnvironmentValue] = {"VLLM_NO_USAGE_STATS": "1"}
        route = neuron_route(resolved.accelerator)
        if route:
            environment[route.artefacts_variable] = ARTEFACTS_FOLDER
            if route.name == "plugin":
                environment["NEURON_LOGICAL_NC_CONFIG"] = str(LOGICAL_CORE_CONFIG)
                environment["VLLM_NEURON_COMPILATION_TIMEOUT"] = str(_COMPILATION_SECONDS)
                environment["VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"] = str(_COMPILATION_SECONDS)
        return {**environment, **super().environment(resolved)}


def _plug_in_arguments(
    names: ArgumentNames, resolved: ResolvedWorkers, sizing: Sizing, route: NeuronRoute
) -> dict[str, Argument]:
    """Return sizes and buckets of the plug-in: one program for prefill, and one per number of sequences."""
    segment = sizing.max_num_batched_tokens
    settings: dict[str, object] = {
        "num_batched_tokens_buckets": [segment],
        "kv_segment_size_buckets": [segment],
        "num_seqs_buckets": _doubled_up_to(sizing.max_num_seqs),
    }
    if resolved.shape.weight_type == "fp8":
        # Its KV cache is FP8 too. Segmented prefill reads it only if it is packed
        # (``tutorial-llama3-70b.md``).
        settings["fp8_packed_kv"] = True
    return {
        **names.sizing_arguments(sizing),
        names.block_size: route.block_size,
        "enable-prefix-caching": True,
        "additional-config": json_argument({"neuron_config": settings}),
    }


def _nxd_arguments(sizing: Sizing) -> dict[str, Argument]:
    """Return the sizes of NxD Inference, whose KV cache has one block per sequence.

    Without `dynamic`, sampling on the device ignores the temperature of requests and is greedy
    (``vllm-user-guide-v1.rst``, Decoding).
    """
    settings = {"enable_bucketing": True, "on_device_sampling_config": {"dynamic": True}}
    return {
        "max-model-len": sizing.max_model_len,
        "max-num-seqs": sizing.max_num_seqs,
        "max-num-batched-tokens": max(sizing.max_model_len, sizing.max_num_batched_tokens),
        "block-size": sizing.max_model_len,
        "num-gpu-blocks-override": sizing.max_num_seqs,
        "enable-prefix-caching": False,
        "additional-config": json_argument({"override_neuron_config": settings}),
    }


def _doubled_up_to(maximum: int) -> list[int]:
    """Return the powers of two below a number, and the number itself."""
    return [*(2**power for power in range(math.ceil(math.log2(maximum)))), maximum]
