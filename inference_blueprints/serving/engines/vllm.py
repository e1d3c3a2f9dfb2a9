"""vLLM: the arguments and environment of a worker.

Flags and defaults are those of the release that the catalogue pins (``vllm/engine/arg_utils.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.engines import kv_cache
from inference_blueprints.serving.engines.block_sizes import vllm_block
from inference_blueprints.serving.engines.kv_cache import (
    KV_EVENTS,
    event_ports,
    kv_transfer,
    lmcache_connector,
    uses_lmcache,
)
from inference_blueprints.serving.engines.serving_engine import (
    DYNAMO_EFA_VARIANT,
    ArgumentNames,
    ChosenKernels,
    OwnServer,
    ParserFlags,
    RequestCounter,
    ServingEngine,
    TransferCounters,
    find_draft,
    json_argument,
    json_object,
    thinking_names,
)
from inference_blueprints.serving.estimates.cache_tiers import host_cache_mib, shared_cache_environment
from inference_blueprints.serving.estimates.image_inputs import allowed_domains, image_pixels, splits_by_image
from inference_blueprints.serving.estimates.node_copies import (
    model_location,
    reads_node_copy,
    streams_weights,
)
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import EnginePort, EnvironmentValue, KvTransfer, OwnAddress
from inference_blueprints.serving.weights_loading import s3_address
from inference_blueprints.spec.types import ArgumentValue, Chat, Model
from inference_catalog import Accelerator
from inference_contracts.units import GIB, MIB

# vLLM's KV cache connectors: between prefill and decode workers, and to the memory of the node.
#
# Both are parts of ``--kv-transfer-config``. ``MultiConnector`` combines two of them: the first child that
# finds tokens loads them, and all children store (``vllm/distributed/kv_transfer/kv_connector/v1`` of vLLM
# 0.31.0). Dynamo finds NIXL among the children (``dynamo/vllm/kv_connector_protocols.py`` of 1.6.1).
#
# ``kv_role`` says whether a connector sends (``kv_producer``), receives (``kv_consumer``) or does both. The
# connector to the node's memory does both: vLLM itself sets ``kv_both`` for it and for LMCache
# (``_post_init_kv_transfer_config`` in ``vllm/config/vllm.py``). So does ``MultiConnector`` with it as a
# child, because the scheduler reads the role of the whole: blocks that a child may load into are freed only
# after the step that still writes to them (``defer_block_free`` in ``vllm/v1/core/sched/scheduler.py``).

# Blocks that cannot be loaded are computed again, and ``vllm:nixl_num_failed_transfers`` counts them. By
# vLLM's default the request fails, which a client of Dynamo sees as status 500.
_RECOMPUTE: Mapping[str, str] = MappingProxyType({"kv_load_failure_policy": "recompute"})
# ``kv_both`` is deprecated for NIXL (``kv_connector/v1/nixl/connector.py`` of vLLM 0.31.0). A decode worker
# would return blocks for the next turn of a prefill worker only with ``bidirectional_kv_xfer``, which is off
# by default (``nixl/base_scheduler.py``) and which neither Dynamo's nor llm-d's router uses.
_NIXL_ROLES: Mapping[WorkerRole, str] = MappingProxyType({"prefill": "kv_producer", "decode": "kv_consumer"})
_NIXL_BACK_ENDS: Mapping[KvTransfer, Mapping[str, object]] = MappingProxyType(
    {
        "libfabric": {"kv_connector_extra_config": {"backends": ["LIBFABRIC"]}},
        # Without RDMA, device memory cannot be registered, so blocks go through the host's memory.
        "ucx": {"kv_buffer_device": "cpu"},
    }
)


def connectors(resolved: ResolvedWorkers, block_size: int) -> Mapping[str, object] | None:
    """Return the value of ``--kv-transfer-config``; None if KV cache stays on the accelerators.

    block_size: Tokens of a block of the KV cache.
    """
    each = tuple(_connectors(resolved, block_size))
    if not each:
        return None
    [first, *others] = each
    extra = {"connectors": each}
    multi = {"kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": extra}
    whole = multi if others else first
    return {**whole, **_RECOMPUTE}


def _connectors(resolved: ResolvedWorkers, block_size: int) -> Iterator[Mapping[str, object]]:
    """Yield the connector between the roles, and the one to the memory of the node and further tiers."""
    transfer = kv_transfer(resolved)
    if transfer:
        role = _NIXL_ROLES[resolved.role]
        yield {"kv_connector": "NixlConnector", "kv_role": role, **_NIXL_BACK_ENDS[transfer]}
    cache = host_cache_mib(resolved)
    if uses_lmcache(resolved):
        yield lmcache_connector(resolved, block_size)
    elif cache:
        # The events carry token ids, so the router learns which blocks are kept here.
        extra = {"cpu_bytes_to_use": cache * MIB, "self_describing_kv_events": True}
        yield {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": extra,
        }


# The command line of ``vllm serve``, and what vLLM's own server reports.
#
# Flags are those of ``vllm/entrypoints/launchers/cli_args.py``, and metrics those of
# ``v1/metrics/loggers.py`` of vLLM 0.31.0.

#: Arguments of ``dynamo.vllm`` that ``vllm serve`` does not have.
_DYNAMO_ONLY = ("disaggregation-mode", "embedding-worker")
_REACHED = "requests arrive at the address and port that the plan sets"
_PARSERS = ParserFlags("vllm", "reasoning-parser", "tool-call-parser")

#: vLLM's server.
VLLM_SERVER = OwnServer(
    program="vllmServer",
    command=("vllm", "serve"),
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    #: vLLM counts requests that ended, also at prefill workers.
    requests=RequestCounter("vllm:request_success_total"),
    latency="vllm:time_to_first_token_seconds",
    parsers=_PARSERS,
)


def serve_arguments(
    planned: Mapping[str, Argument], port: int, stream_seconds: int
) -> tuple[str, dict[str, Argument]]:
    """Return the model and the arguments of ``vllm serve``, from those of Dynamo's worker.

    Events of the KV cache are left out: they need a router that reads them.

    planned: Arguments of Dynamo's worker, by name without dashes.
    port: Port of the API.
    stream_seconds: Longest time of an answer, which runs to its end after SIGTERM.
    """
    left_out = (*_DYNAMO_ONLY, "model", "kv-events-config")
    arguments = {name: value for name, value in planned.items() if name not in left_out}
    arguments |= {"port": port, "shutdown-timeout": stream_seconds}
    # Answers report how much of a prompt was cached, as those of Dynamo's workers always do.
    arguments["enable-prompt-tokens-details"] = True
    if _PARSERS.tool_call in arguments:
        # Without it, vLLM refuses requests in which the model may choose a tool.
        arguments.setdefault("enable-auto-tool-choice", True)
    return str(planned["model"]), arguments


_KV_CACHE = "set kvCache: {hostMemoryGib: …}"
# vLLM's default for an API server by GiB of device memory; A100 always gets the lowest (vllm#17885).
_STEP_TOKENS = ((160, 16384), (70, 8192), (0, 2048))
# Default of the port on which workers exchange what NIXL needs. Each data parallel rank adds its index
# (``kv_connector/v1/nixl`` of vLLM 0.31.0).
_NIXL = 5600
# A model that embeds, also of an architecture that writes text, or that scores (vLLM documentation, "Pooling
# Models").
# Whether prefixes are cached is left to the worker: it depends on the model's attention
# (``dynamo/vllm/args.py`` of ai-dynamo 1.6.1, ``vllm/engine/arg_utils.py`` of vLLM 0.31.0).
_POOLING: Mapping[str, Mapping[str, Argument]] = MappingProxyType(
    {
        "embed": {"runner": "pooling", "convert": "embed", "embedding-worker": True},
        "rerank": {"runner": "pooling", "convert": "classify"},
    }
)
# Each device reads its own part; the limit bounds the host memory used as a buffer.
_STREAMER = {"concurrency": 16, "distributed": True, "memory_limit": 4 * 1024**3}


class Vllm(ServingEngine):
    """vLLM."""

    cache_rule = "vllm"
    dynamo_name = "vllm"
    #: ``common/multimodal/image_loader.py`` of Dynamo 1.6. Without Dynamo, the engine keeps to
    #: ``allowed_media_domains`` (``multimodal/media/connector.py`` of vLLM 0.31.0).
    fetches_from_any_host = True
    efa_variant = DYNAMO_EFA_VARIANT
    argument_names = ArgumentNames(
        length="max-model-len",
        sequences="max-num-seqs",
        step_tokens="max-num-batched-tokens",
        block_size="block-size",
        memory_share="gpu-memory-utilization",
        kv_cache_type="kv-cache-dtype",
        kv_cache_types=("auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"),
        without_prefix_cache=("enable-prefix-caching", False),
        state_type="mamba-cache-dtype",
        recurrent_type="mamba-ssm-cache-dtype",
        stretched_context="hf-overrides",
    )
    #: vLLM counts what NIXL's telemetry reports (https://docs.vllm.ai, "Production Metrics"), each rank for
    #: itself (its ``NixlPromMetrics`` observes each transfer of all tensor-parallel ranks).
    transfer_counters = TransferCounters(
        moved=("vllm:nixl_bytes_transferred_sum",),
        failed=("vllm:nixl_num_failed_transfers_total",),
        seconds="vllm:nixl_xfer_time_seconds_sum",
        transfers="vllm:nixl_xfer_time_seconds_count",
    )
    own_server = VLLM_SERVER
    needs_user_name = True
    #: ``v1/metrics/loggers.py``.
    cache_use = "vllm:kv_cache_usage_perc"
    # FlashMLA takes multiples of this size only.
    block_size = 64
    # Also holds PyTorch's compiled graphs and DeepGEMM's kernels (``vllm/envs.py``).
    kernel_folders = MappingProxyType({"VLLM_CACHE_ROOT": "vllm"})
    # It does not gather heads: its connector reads whole heads from one device (vLLM documentation,
    # "NixlConnector Usage": decode TP must be a multiple of prefill TP). No role has stages: they need the
    # connector's push mode, which no router here supports (``kv_connector/v1/nixl/base_worker.py``).
    kv_cache_tiers = frozenset({"hostMemoryGib", "nvme", "shared"})
    # Each node of a worker runs ``vllm`` with ``--nnodes`` and its rank.
    spans_nodes = True

    kv_cache_types = MappingProxyType({"bf16": "bfloat16", "fp8": "fp8"})
    # Weights go to the device layer by layer, so it never holds them in 16 bits
    # (``layers/quantization/online/fp8.py`` of vLLM 0.31.0; names in ``config/quantization.py``).
    online_types = MappingProxyType({"fp8": "fp8_per_tensor", "fp8Blocks": "fp8_per_block"})
    partition_variable = "VLLM_PP_LAYER_PARTITION"  # ``get_pp_indices`` in ``distributed/utils.py``
    speculation_methods = frozenset({"mtp", "nGram", "eagle"})

    def speculation_arguments(self, model: Model) -> Mapping[str, Argument]:
        """Return the method, and the draft. It is split like the model (``config/speculative.py``)."""
        speculation, draft = model.speculation, find_draft(model)
        if speculation is None:
            return {}
        chosen: dict[str, object] = {"method": "mtp" if speculation.mtp else "ngram"}
        if draft:
            chosen = {"method": draft.method, "model": draft.repository}
            chosen |= {"revision": draft.revision} if draft.revision else {}
        return {"speculative-config": json_argument({**chosen, "num_speculative_tokens": speculation.tokens})}

    def server_arguments(
        self, arguments: Mapping[str, Argument], port: int, stream_seconds: int
    ) -> tuple[str, ...]:
        model, options = serve_arguments(arguments, port, stream_seconds)
        return (model, *command_line(options))

    def chat_arguments(self, chat: Chat) -> Mapping[str, Argument]:
        """Return the default of thinking, by each name that templates have for it, and the template itself.

        vLLM passes a template only what it reads, and takes a text that is no path for a template
        (``resolve_chat_template_kwargs`` in ``renderers/hf.py``, ``_load_chat_template`` in
        ``entrypoints/chat_utils.py`` of 0.31.0). A request's own ``chat_template_kwargs`` come first.
        """
        arguments: dict[str, Argument] = {}
        if chat.thinking is not None:
            arguments["default-chat-template-kwargs"] = json_argument(thinking_names(on=chat.thinking))
        if chat.text is not None:
            arguments["chat-template"] = chat.text
        return arguments

    def planned_block(self, resolved: ResolvedWorkers) -> int:
        return max(self.block_size, self.needed_block(resolved))

    def needed_block(self, resolved: ResolvedWorkers) -> int:
        """Return the tokens that a block must be a multiple of, for the kernels of the model or the user."""
        chosen = self.chosen_kernels(resolved.model.engine.arguments)
        return vllm_block(resolved.device_shape, [each.name for each in chosen])

    def step_tokens(self, accelerator: Accelerator) -> int:
        gib = 0 if accelerator.name.startswith("a100") else accelerator.memory_bytes / GIB
        return next(tokens for minimum, tokens in _STEP_TOKENS if gib >= minimum)

    def chosen_kernels(self, arguments: Mapping[str, ArgumentValue]) -> Iterator[ChosenKernels]:
        """Yield the kernels that an argument or an object of JSON names, in either case.

        `AttentionConfig` in ``config/attention.py`` of vLLM 0.31.0.
        """
        for each in super().chosen_kernels(arguments):
            yield replace(each, name=each.given.upper())
        given = json_object(arguments, "attention-config")
        kinds = given.get("backend_per_kind")
        for group, chosen in {"": given.get("backend"), **(kinds if isinstance(kinds, dict) else {})}.items():
            if isinstance(chosen, str):
                yield ChosenKernels("attention-config", chosen, chosen.upper(), str(group))

    def steps_at_a_time(self, resolved: ResolvedWorkers) -> int:
        """Return the steps that may hold tokens at a time: the next one is scheduled while one runs.

        ``max_concurrent_batches`` in ``config/vllm.py`` of vLLM 0.31.0. ``--no-async-scheduling`` ends it.
        """
        arguments = resolved.model.engine.arguments
        is_alone = arguments.get("no-async-scheduling") or arguments.get("async-scheduling") is False
        return resolved.pipeline_parallel_size + (0 if is_alone else 1)

    def frees_windows(self, resolved: ResolvedWorkers) -> bool:
        """Return whether vLLM's hybrid manager of the KV cache is on.

        Some connectors switch it off (``config/vllm.py`` of vLLM 0.31.0). With any, every layer counts whole.
        So do a draft and layers for multi-token prediction where layers attend in chunks (Llama 4). Without
        them, chunks are freed: ``VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE`` is on unless it is set.
        """
        switched_off = resolved.model.engine.arguments.get("disable-hybrid-kv-cache-manager")
        speculation = resolved.model.speculation
        guesses = speculation and (speculation.mtp or speculation.eagle)
        chunks = any(each.kind == "chunk" for each in resolved.shape.cached_layers)
        return not (switched_off or kv_transfer(resolved) or resolved.model.kv_cache or (guesses and chunks))

    def usable_cache_share(self, resolved: ResolvedWorkers) -> float:
        return kv_cache.filled_part(resolved)

    def planned_arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
        weights = resolved.model.weights
        streamed = s3_address(weights) if streams_weights(resolved) else None
        planned: dict[str, Argument] = {"model": streamed or model_location(resolved)}
        planned["served-model-name"] = resolved.model.names
        if weights.revision and not streamed and not reads_node_copy(resolved):
            planned["revision"] = weights.revision
        if streamed:
            planned["load-format"] = "runai_streamer"
            planned["model-loader-extra-config"] = json_argument(_STREAMER)
        planned |= {
            **_parallelism(resolved),
            **self.argument_names.sizing_arguments(sizing),
            **_POOLING.get(resolved.model.task, {"enable-prefix-caching": True}),
            **_image_arguments(resolved),
        }
        if resolved.shared_with_batch:
            planned["scheduling-policy"] = "priority"
        if kv_transfer(resolved):
            planned["disaggregation-mode"] = resolved.role
        transfer = connectors(resolved, sizing.block_size)
        if transfer:
            planned["kv-transfer-config"] = json_argument(transfer)
        if resolved.publishes_kv_events:
            planned["kv-events-config"] = json_argument({**KV_EVENTS, "enable_kv_cache_events": True})
        return planned

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        environment: dict[str, EnvironmentValue] = {"VLLM_NO_USAGE_STATS": "1"}
        if kv_transfer(resolved) and host_cache_mib(resolved):
            # Dynamo finds the address itself only if NIXL is the only connector.
            environment["VLLM_NIXL_SIDE_CHANNEL_HOST"] = OwnAddress()
        if resolved.model.media:
            # An allowed host could redirect to one that is not allowed.
            environment["VLLM_MEDIA_URL_ALLOW_REDIRECTS"] = "0"
        if kv_cache.uses_lmcache(resolved):
            environment |= {**kv_cache.ENVIRONMENT, **shared_cache_environment(resolved)}
        return {**environment, **super().environment(resolved)}

    def ports(self, resolved: ResolvedWorkers) -> tuple[EnginePort, ...]:
        nixl = EnginePort(
            "nixl", _NIXL, variable="VLLM_NIXL_SIDE_CHANNEL_PORT", count=resolved.data_parallel_size
        )
        return (
            *event_ports(resolved),
            *((nixl,) if kv_transfer(resolved) else ()),
            *(kv_cache.PORTS if kv_cache.uses_lmcache(resolved) else ()),
        )


def _parallelism(resolved: ResolvedWorkers) -> Mapping[str, Argument]:
    """Return how a worker is split; vLLM spreads experts over all ranks, whole or in slices."""
    sizes = {
        "pipeline-parallel-size": resolved.pipeline_parallel_size,
        "data-parallel-size": resolved.data_parallel_size,
    }
    experts = {"enable-expert-parallel": True} if resolved.workers.expert_parallel else {}
    return {
        "tensor-parallel-size": resolved.tensor_parallel_size,
        **{name: size for name, size in sizes.items() if size > 1},
        **experts,
    }


def _image_arguments(resolved: ResolvedWorkers) -> dict[str, Argument]:
    """Return the limits of images: how many, how large, and from which hosts."""
    media, pixels = resolved.model.media, image_pixels(resolved)
    if media is None:
        return {"language-model-only": True} if resolved.shape.vision else {}
    return {
        "limit-mm-per-prompt": json_argument({"image": media.images_per_request, "video": 0}),
        "allowed-media-domains": allowed_domains(resolved),
        **({"mm-processor-kwargs": json_argument(pixels)} if pixels else {}),
        **({"mm-encoder-tp-mode": "data"} if splits_by_image(resolved) else {}),
    }
