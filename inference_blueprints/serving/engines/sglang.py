"""SGLang: the arguments and environment of a worker.

Flags and defaults are those of the release that the catalogue pins (``sglang/srt/arg_groups``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.engines.block_sizes import sglang_blocks
from inference_blueprints.serving.engines.kv_cache import KV_EVENTS, NIXL_TELEMETRY, event_ports, kv_transfer
from inference_blueprints.serving.engines.serving_engine import (
    DYNAMO_EFA_VARIANT,
    TEMPLATE_FILE,
    ArgumentNames,
    OwnServer,
    ParserFlags,
    RequestCounter,
    ServingEngine,
    TransferCounters,
    find_draft,
    json_argument,
    thinking_names,
)
from inference_blueprints.serving.estimates.cache_tiers import host_cache_mib
from inference_blueprints.serving.estimates.image_inputs import allowed_domains, image_pixels, splits_by_image
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.node_copies import model_location, reads_node_copy
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers, WorkerRole
from inference_blueprints.serving.types import EnginePort, EnvironmentValue, FilePath
from inference_blueprints.spec.types import Chat, Model
from inference_catalog import Accelerator
from inference_contracts.units import GB, GIB, MIB

_MODEL = "set weights.huggingFace"
_NAMED_DOWNLOAD = "weights come from the Hugging Face Hub; set weights.huggingFace"
# SGLang's default by GiB of device memory (``handle_gpu_memory_settings``).
_STEP_TOKENS = ((160, 16384), (60, 8192), (20, 4096), (0, 2048))
# Decode workers find a prefill worker through a server that listens on the API server's address.
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 -- of a pod


class Sglang(ServingEngine):
    """SGLang."""

    cache_rule = "sglang"
    dynamo_name = "sglang"
    #: ``allowed_media_domains`` also holds under Dynamo (``srt/utils/common.py`` of SGLang 0.5.21).
    fetches_from_any_host = False
    efa_variant = DYNAMO_EFA_VARIANT
    argument_names = ArgumentNames(
        length="context-length",
        sequences="max-running-requests",
        step_tokens="chunked-prefill-size",
        block_size="page-size",
        memory_share="mem-fraction-static",
        kv_cache_type="kv-cache-dtype",
        kv_cache_types=("auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"),
        without_prefix_cache=("disable-radix-cache", True),
        recurrent_type="mamba-ssm-dtype",
        stretched_context="json-model-override-args",
    )
    totals_over_ranks = frozenset({argument_names.sequences, argument_names.step_tokens})
    #: SGLang leaves the count of bytes to NIXL's exporter (``docs/telemetry.md`` of ai-dynamo/nixl).
    transfer_counters = TransferCounters(
        moved=("agent_tx_bytes_total", "agent_rx_bytes_total"),
        failed=("agent_errors_total", "sglang:num_transfer_failed_reqs_total"),
    )
    # Dynamo's router and SGLang both hash pages of this size; attention on Blackwell accepts no larger ones.
    #: Metrics are those of ``srt/observability/metrics_collector.py`` of SGLang 0.5.21 and 0.5.23.
    needs_user_name = True
    own_server = OwnServer(
        program="sglangServer",
        command=("python3", "-m", "sglang.launch_server"),
        running="sglang:num_running_reqs",
        waiting="sglang:num_queue_reqs",
        requests=RequestCounter("sglang:num_requests_total"),
        latency="sglang:time_to_first_token_seconds",
        parsers=ParserFlags("sglang", "reasoning-parser", "tool-call-parser"),
        # It ends them (``sigterm_watchdog`` in ``srt/managers/tokenizer_manager.py``), unless a check of its
        # health has failed, which also happens when it is busy.
        finishes_answers=False,
    )
    #: ``srt/metrics/collector.py``.
    cache_use = "sglang:token_usage"
    block_size = 64
    # ``python/sglang/srt/environ.py``.
    kernel_folders = MappingProxyType({"SGLANG_CACHE_DIR": "sglang", "SGLANG_DG_CACHE_DIR": "deep-gemm"})
    # Each prefill device writes its part of the heads (``compute_head_slice_params`` in its NIXL connection).
    gathers_heads = True
    kv_cache_tiers = frozenset({"hostMemoryGib"})
    # HiCache leaves this much memory free when it allocates (``mem_cache/pool_host/base.py`` of SGLang
    # 0.5.21).
    host_cache_reserve_mib = 10 * 1024
    # Chunks are counted per stage of the prefill worker (``disaggregation/nixl/conn.py``).
    staged_transfer_roles: frozenset[WorkerRole] = frozenset({"prefill"})
    # Each node of a worker runs SGLang with ``--nnodes`` and its rank.
    spans_nodes = True

    kv_cache_types = MappingProxyType({"bf16": "bf16", "fp8": "fp8_e4m3"})
    partition_variable = "SGLANG_PP_LAYER_PARTITION"  # ``get_pp_indices`` in ``distributed/utils.py``
    speculation_methods = frozenset({"mtp", "eagle"})
    counts_draft_as_layers = True
    extends_draft_context = False

    def speculation_arguments(self, model: Model) -> Mapping[str, Argument]:
        """Return one chain of guesses, and the token that is checked with it.

        With a single guess per step, the checked tokens are the steps and one more
        (``arg_groups/speculative_hook.py`` of SGLang 0.5.21). Without a draft, the model's own layers guess
        (SGLang documentation, "DeepSeek V3/V3.1/R1 Model Usage", Multi-token Prediction).
        """
        speculation, draft = model.speculation, find_draft(model)
        if speculation is None:
            return {}
        planned: dict[str, Argument] = {
            "speculative-algorithm": draft.method.upper() if draft else "EAGLE",
            "speculative-num-steps": speculation.tokens,
            "speculative-eagle-topk": 1,
            "speculative-num-draft-tokens": speculation.tokens + 1,
        }
        if draft:
            planned["speculative-draft-model-path"] = draft.repository
            planned |= {"speculative-draft-model-revision": draft.revision} if draft.revision else {}
        return planned

    def planned_block(self, resolved: ResolvedWorkers) -> int:
        sizes = self.kept_blocks(resolved)
        return self.block_size if not sizes or self.block_size in sizes else sizes[-1]

    def kept_blocks(self, resolved: ResolvedWorkers) -> tuple[int, ...]:
        """Return the sizes of blocks that SGLang does not change; none if it keeps every size."""
        chosen = self.chosen_kernels(resolved.model.engine.arguments)
        capability = resolved.accelerator.compute_capability or ""
        return sglang_blocks(resolved.device_shape, capability, [each.name for each in chosen])

    def step_tokens(self, accelerator: Accelerator) -> int:
        gib = accelerator.memory_bytes / GIB
        return next(tokens for minimum, tokens in _STEP_TOKENS if gib >= minimum)

    def memory_share(self, memory: MemoryEstimate, device_bytes: int) -> float:
        """Return ``--mem-fraction-static``: weights and KV cache, without activations and graphs."""
        return (memory.total_bytes - memory.activation_bytes - memory.reserved_bytes) / device_bytes

    def utilization(self, share: float, whole: MemoryEstimate) -> float:
        """Return the filled part of the device, including activations and graphs."""
        return share + (whole.activation_bytes + whole.reserved_bytes) / whole.total_bytes

    def usable_cache_share(self, resolved: ResolvedWorkers) -> float:
        """Each device takes whole gigabytes; with MLA each device keeps a copy of every latent."""
        mib = host_cache_mib(resolved)
        if not mib:
            return 1
        devices = 1 if resolved.shape.attention == "mla" else resolved.tensor_parallel_size
        return _hicache_gigabytes(resolved) * GB * devices / (mib * MIB)

    def planned_arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
        weights = resolved.model.weights
        planned: dict[str, Argument] = {"model-path": model_location(resolved)}
        # Dynamo's worker splits them (``split_served_model_names``, ``dynamo/sglang/args.py`` of 1.6.1).
        planned["served-model-name"] = ",".join(resolved.model.names)
        if weights.revision and not reads_node_copy(resolved):
            planned["revision"] = weights.revision
        planned |= {
            **_parallelism(resolved),
            **self.argument_names.sizing_arguments(sizing),
            **self._totals_over_ranks(resolved, sizing),
            "enable-metrics": True,
            **_image_arguments(resolved),
        }
        if kv_transfer(resolved):
            planned["disaggregation-mode"] = resolved.role
            planned["disaggregation-transfer-backend"] = "nixl"
        if host_cache_mib(resolved):
            planned |= {"enable-hierarchical-cache": True, "hicache-size": _hicache_gigabytes(resolved)}
        if resolved.role == "prefill":
            planned["host"] = _EVERY_ADDRESS
        if resolved.publishes_kv_events:
            planned["kv-events-config"] = json_argument(KV_EVENTS)
        return planned

    def chat_arguments(self, chat: Chat) -> Mapping[str, Argument]:
        """Return the default of thinking, and the path of the template: SGLang takes no text for it.

        It reads the name of a template of its own, or a file (``_load_explicit_chat_template`` in
        ``srt/parser/template_manager.py``). A request's own ``chat_template_kwargs`` come first
        (``srt/entrypoints/openai/serving_chat.py``; both of 0.5.21 and 0.5.23).
        """
        arguments: dict[str, Argument] = {}
        if chat.thinking is not None:
            arguments["default-chat-template-kwargs"] = json_argument(thinking_names(on=chat.thinking))
        if chat.text is not None:
            arguments["chat-template"] = f"$({TEMPLATE_FILE})"
        return arguments

    def chat_environment(self, chat: Chat) -> Mapping[str, EnvironmentValue]:
        return {} if chat.text is None else {TEMPLATE_FILE: FilePath("chat-template.jinja", chat.text)}

    def server_arguments(
        self,
        arguments: Mapping[str, Argument],
        port: int,
        stream_seconds: int,  # noqa: ARG002 -- the signal comes after the longest answer
    ) -> tuple[str, ...]:
        # Answers report how much of a prompt was cached, as those of Dynamo's workers always do.
        reached: dict[str, Argument] = {"host": _EVERY_ADDRESS, "port": port, "enable-cache-report": True}
        return command_line({**arguments, **reached})

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        transfer = kv_transfer(resolved)
        back_end = {"libfabric": {"SGLANG_DISAGGREGATION_NIXL_BACKEND": "LIBFABRIC"}}
        return {
            **back_end.get(transfer or "", {}),
            # Needs NIXL 1.5.0 (requirements of ``ai-dynamo[sglang]``); vLLM, with 1.4.1, counts itself.
            **(NIXL_TELEMETRY if transfer else {}),
            **super().environment(resolved),
        }

    def ports(self, resolved: ResolvedWorkers) -> tuple[EnginePort, ...]:
        """Dynamo chooses a free port for the handshake itself (``dynamo/sglang/args.py``, bootstrap port)."""
        return event_ports(resolved)

    def _totals_over_ranks(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
        """Return the sizes that SGLang divides among its ranks (``arg_groups/parallel_hook.py``)."""
        ranks = resolved.data_parallel_size
        return {
            self.argument_names.sequences: sizing.max_num_seqs * ranks,
            self.argument_names.step_tokens: sizing.max_num_batched_tokens * ranks,
        }


def _hicache_gigabytes(resolved: ResolvedWorkers) -> int:
    """Return ``--hicache-size`` per device, at least 1: 0 would mean twice the size of the device's cache."""
    each = host_cache_mib(resolved) * MIB // resolved.tensor_parallel_size
    return max(1, each // GB)


def _parallelism(resolved: ResolvedWorkers) -> Mapping[str, Argument]:
    """Return how a worker is split; SGLang's tensor size includes the data parallel attention ranks."""
    planned: dict[str, Argument] = {"tensor-parallel-size": resolved.expert_accelerators}
    if resolved.pipeline_parallel_size > 1:
        planned["pipeline-parallel-size"] = resolved.pipeline_parallel_size
    if resolved.data_parallel_size > 1:
        planned |= {"data-parallel-size": resolved.data_parallel_size, "enable-dp-attention": True}
    if resolved.workers.expert_parallel:
        planned["expert-parallel-size"] = resolved.expert_accelerators
    return planned


def _image_arguments(resolved: ResolvedWorkers) -> dict[str, Argument]:
    """Return the limits of images: how many, how large, and from which hosts.

    Dynamo's worker passes image URLs to the engine (``request_handlers/llm/decode_handler.py``), which
    fetches them.
    """
    media, pixels = resolved.model.media, image_pixels(resolved)
    if resolved.shape.vision is None:
        return {}
    maximum = {"image": media.images_per_request if media else 0, "video": 0, "audio": 0}
    return {
        "limit-mm-data-per-request": json_argument(maximum),
        "allowed-media-domains": allowed_domains(resolved),
        **({"enable-multimodal": True} if media else {}),
        **({"mm-process-config": json_argument({"image": pixels})} if pixels else {}),
        **({"mm-enable-dp-encoder": True} if media and splits_by_image(resolved) else {}),
    }
