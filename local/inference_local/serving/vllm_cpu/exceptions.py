"""What a processor cannot take: the settings of a planned vLLM worker that differ on this machine.

Everything that has no rule here goes to the engine as the plan states it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from inference_blueprints.serving.command_line import arguments_by_name
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.estimates.node_copies import kernel_environment
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.serving.types import EnvironmentValue, Process
from inference_blueprints.spec.types import Workers
from inference_local.serving.platform_parts import Replacement
from inference_local.serving.process_commands import OWN_ADDRESS
from inference_local.serving.vllm_cpu import connectors
from inference_local.serving.vllm_cpu.argument_rules import (
    LEFT_OUT,
    Rule,
    RuledWorker,
    Values,
    planned_text,
    process_exceptions,
)

#: Most processes of this machine that share one model or one rank.
SPLIT = 2
#: The command of workers that serve requests themselves, and not through Dynamo.
SERVE = ("vllm", "serve")
_EXPERTS = "enable-expert-parallel"
#: ``vllm/platforms/cpu.py`` of 0.31.0 sets it without AMX, and switches the prefix cache off.
_LATENT_BLOCK = "16"
# The same file also sets what `_LATENT_ADDED` and the rules of these arguments state, without a word.
_WHOLE_PROMPTS = (
    "without AMX, vLLM computes prompts with latent attention (MLA) in one step, and keeps no prefix cache"
)
_NOT_SET = "not set"
_RANDOM_WEIGHTS = "a small copy of the architecture with random weights; nothing is downloaded"
_KV_CACHE = "KV cache of each worker in GiB; it takes the place of the share of a device's memory"
_NO_FP8 = "vLLM quantises 16-bit weights only, and this machine computes with 32 bits"
# ``v1/attention/backends/cpu_attn.py``
_NO_FP8_CACHE = "FP8 KV cache needs AVX-512 or AMX, which not every machine has"
# ``apply`` of ``fused_moe/experts/cpu_moe.py`` ignores which experts a process has. Data parallel ranks need
# ``all_gatherv``, which ``CpuCommunicator`` has not (``device_communicators/base_device_communicator.py``).
_NO_EXPERTS = "vLLM cannot spread experts over processes of a CPU"
# The last stage needs a warm-up, which does nothing without compiled graphs
# (``v1/worker/cpu_model_runner.py``).
_NO_STAGES = "vLLM's stages fail on a CPU without compiled graphs"
_SPLIT = f"each part is a process of about 2 GB; {SPLIT} show that the model is split"
_SHARED_ADDRESS = (
    "all workers share this machine, and vLLM publishes KV events only on every address; "
    "x is the last number of the worker's own address"
)
_FEW_PROCESSORS = "several workers share the processors of this machine"
_NO_NODE_FOLDER = "this machine has no folder that workers of a node share"


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """Arguments and environment of a worker on this machine, and what differs from the plan."""

    arguments: tuple[str, ...]
    environment: Mapping[str, EnvironmentValue]
    replacements: tuple[Replacement, ...]


def _left_out(_values: Values, _worker: RuledWorker) -> None:
    """Leave the argument out."""


def split(parts: int) -> int:
    """Return the number of processes on this machine that share what so many accelerators share."""
    return min(parts, SPLIT)


def rank_count(workers: Workers) -> int:
    """Return the number of processes on this machine that compute for one worker."""
    data = 1 if workers.expert_parallel else split(workers.data_parallel_size)
    return split(workers.tensor_parallel_size) * data


def _at_most_split(values: Values, _worker: RuledWorker) -> Values:
    return (str(split(int(values[0]))),)


def _data_parallel(values: Values, worker: RuledWorker) -> Values | None:
    return None if _EXPERTS in worker.planned else _at_most_split(values, worker)


def _reason_without_ranks(_values: Values, worker: RuledWorker) -> str:
    return _NO_EXPERTS if _EXPERTS in worker.planned else _SPLIT


def _small_draft(values: Values, worker: RuledWorker) -> Values:
    config = json.loads(values[0])
    if "model" not in config:
        return values
    here = {name: value for name, value in config.items() if name != "revision"}
    return (json.dumps({**here, "model": str(worker.draft_directory)}, separators=(",", ":")),)


def _latent_block(values: Values, worker: RuledWorker) -> Values:
    return (_LATENT_BLOCK,) if worker.latent_attention else values


def _unless_latent(values: Values, worker: RuledWorker) -> Values | None:
    return None if worker.latent_attention else values


def _whole_prompt_if_latent(values: Values, worker: RuledWorker) -> Values:
    if not worker.latent_attention:
        return values
    return (str(max(int(size) for size in (*values, *worker.planned["max-model-len"]))),)


def _events_reason(_values: Values, worker: RuledWorker) -> str:
    return _WHOLE_PROMPTS if worker.latent_attention else _SHARED_ADDRESS


def _own_ports(values: Values, worker: RuledWorker) -> Values | None:
    """Shift the port by ten per worker, because all share the address ``*``.

    vLLM listens only if the endpoint has a ``*``. To other addresses it connects, as Dynamo's worker does,
    and no event arrives (``_is_bind_endpoint`` in ``vllm/distributed/kv_events.py``, release 0.31.0).
    """
    if worker.latent_attention:
        return None

    def shifted(found: re.Match[str]) -> str:
        return f"tcp://*:{worker.own_port(int(found[1]))}"

    return tuple(re.sub(r"tcp://\*:(\d+)", shifted, value) for value in values)


#: By argument without dashes.
_ARGUMENTS: Mapping[str, Rule] = MappingProxyType(
    {
        "revision": Rule(_left_out, _RANDOM_WEIGHTS),
        "model-loader-extra-config": Rule(_left_out, _RANDOM_WEIGHTS),
        "tensor-parallel-size": Rule(_at_most_split, _SPLIT, f"at most {SPLIT}"),
        "data-parallel-size": Rule(
            _data_parallel,
            f"{_SPLIT}; {_NO_EXPERTS}",
            f"at most {SPLIT}; left out with expert parallelism",
            _reason_without_ranks,
        ),
        "pipeline-parallel-size": Rule(_left_out, _NO_STAGES),
        _EXPERTS: Rule(_left_out, _NO_EXPERTS),
        "quantization": Rule(_left_out, _NO_FP8),
        "kv-cache-dtype": Rule(_left_out, _NO_FP8_CACHE),
        "block-size": Rule(
            _latent_block,
            "vLLM's latent attention (MLA) takes no other block size on a CPU",
            f"{_LATENT_BLOCK} with latent attention",
        ),
        "enable-prefix-caching": Rule(_unless_latent, _WHOLE_PROMPTS, f"{LEFT_OUT} with latent attention"),
        "max-num-batched-tokens": Rule(
            _whole_prompt_if_latent, _WHOLE_PROMPTS, "at least `--max-model-len` with latent attention"
        ),
        "kv-transfer-config": connectors.RULE,
        "speculative-config": Rule(
            _small_draft, "a draft (EAGLE) has one layer with random weights", "a draft on this machine"
        ),
        "kv-events-config": Rule(
            _own_ports,
            f"{_SHARED_ADDRESS}; {_WHOLE_PROMPTS}",
            "a port of the worker's own; left out with latent attention",
            _events_reason,
        ),
    }
)
#: Arguments that only this machine needs, with the reason.
_ADDED: Mapping[str, tuple[Values, str]] = MappingProxyType(
    {
        "load-format": (("dummy",), _RANDOM_WEIGHTS),
        "dtype": (("float32",), "processors without AVX-512 compute 16-bit types slowly or not at all"),
        "enforce-eager": ((), "compiled graphs save time on a GPU; here compiling takes minutes"),
    }
)
#: The same, with latent attention only.
_LATENT_ADDED: Mapping[str, tuple[Values, str]] = MappingProxyType(
    dict.fromkeys(("no-enable-prefix-caching", "no-enable-chunked-prefill"), ((), _WHOLE_PROMPTS))
)
#: Variables that are left out, by the beginning of their names, with the reason.
_VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "FI_": connectors.NO_EFA,
        "NCCL_": "processes of a worker talk by gloo, not by NCCL",
        "WEIGHTS_": _RANDOM_WEIGHTS,
        "KV_CACHE_": connectors.NO_BUCKET,
        **dict.fromkeys(kernel_environment(ENGINES["vllm"].kernel_folders), _NO_NODE_FOLDER),
    }
)
#: Variables that only this machine needs, with the reason.
_ADDED_VARIABLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "VLLM_CPU_KVCACHE_SPACE": ("1", _KV_CACHE),
        "VLLM_CPU_OMP_THREADS_BIND": ("nobind", _FEW_PROCESSORS),
        "OMP_NUM_THREADS": ("1", _FEW_PROCESSORS),
    }
)
#: Where Dynamo's frontends listen, and why each has another port.
FRONTEND_HOST = "127.0.0.1"
FREE_PORT = "all frontends share this machine, so each has a port of its own"
#: Variables of Dynamo's frontends that only this machine needs, with the reason.
FRONTEND_VARIABLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "DYN_TCP_REQUEST_TIMEOUT": (
            "120",
            "a worker that shares its processor with others accepts a request late; Dynamo gives it 5 s, "
            "then the client gets a 503",
        ),
    }
)
#: Variables with the address of a worker. On EKS, the engine finds that of its pod.
_ADDRESSES = ("VLLM_HOST_IP", "VLLM_NIXL_SIDE_CHANNEL_HOST")


def list_exceptions() -> tuple[tuple[str, str, str], ...]:
    """Return each setting that differs on this machine, what it is here, and the reason."""
    return (
        ("`--model`", "a folder on this machine", _RANDOM_WEIGHTS),
        *((f"`--{name}`", rule.shown, rule.reason) for name, rule in _ARGUMENTS.items()),
        *connectors.LMCACHE_ROWS,
        *(
            (f"`--{name}`", f"`{' '.join(values)}`" if values else "set", why)
            for name, (values, why) in _ADDED.items()
        ),
        *((f"`--{name}`", "set with latent attention", why) for name, (_, why) in _LATENT_ADDED.items()),
        ("`--host` of `vllm serve`", "the worker's own address", OWN_ADDRESS),
        *(
            (f"`{name}…`" if name.endswith("_") else f"`{name}`", "left out", why)
            for name, why in _VARIABLES.items()
        ),
        *((f"`{name}`", f"`{value}`", why) for name, (value, why) in _ADDED_VARIABLES.items()),
        *((f"`{name}` of frontends", f"`{value}`", why) for name, (value, why) in FRONTEND_VARIABLES.items()),
        ("`--http-host` of frontends", f"`{FRONTEND_HOST}`", OWN_ADDRESS),
        ("`--http-port` of frontends", "a free port", FREE_PORT),
        *((f"`{name}`", "the worker's own address", OWN_ADDRESS) for name in _ADDRESSES),
        *process_exceptions(),
    )


def local_settings(
    process: Process, *, workers: str, model_directory: Path, address: str, latent_attention: bool
) -> LocalSettings:
    """Return the settings of a planned worker on this machine.

    process: The worker in the plan. The model is its argument ``--model`` or its first word.
    workers: Its deployment and role, for the table of exceptions.
    model_directory: Folder of the small model.
    address: The worker's own loopback address.
    latent_attention: Whether the model's attention is latent (MLA).
    """
    planned = dict(arguments_by_name(process.arguments))
    worker = RuledWorker(address, model_directory, planned, latent_attention)
    here: dict[str, Values] = {}
    replaced: list[tuple[str, str | None, str | None, str]] = []
    for name, values in planned.items():
        changed, reason = _here(name, values, str(model_directory), worker)
        if changed is not None:
            here[name] = changed
        if changed != values:
            replaced.append((_flag(name), _text(values), _text(changed), reason))
    added = {**_ADDED, **(_LATENT_ADDED if latent_attention else {})}
    if command_behind_filter(process) == SERVE:
        added["host"] = ((address,), OWN_ADDRESS)
    for name, (values, reason) in added.items():
        if name not in planned:
            here[name] = values
            replaced.append((_flag(name), None, _text(values), reason))
    variables = dict(process.environment)
    for name, value in process.environment.items():
        reasons = [reason for beginning, reason in _VARIABLES.items() if name.startswith(beginning)]
        if reasons:
            del variables[name]
            replaced.append((name, planned_text(value), None, reasons[0]))
    addresses = dict.fromkeys(_ADDRESSES, (address, OWN_ADDRESS))
    for name, (value, reason) in {**_ADDED_VARIABLES, **addresses}.items():
        variables[name] = value
        replaced.append((name, planned_text(process.environment.get(name)), value, reason))
    words = [word for name, values in here.items() for word in ([f"--{name}"] if name else []) + [*values]]
    return LocalSettings(
        tuple(words),
        variables,
        tuple(
            Replacement(workers, setting, planned or _NOT_SET, here or LEFT_OUT, reason)
            for setting, planned, here, reason in replaced
        ),
    )


def _here(name: str, values: Values, model_directory: str, worker: RuledWorker) -> tuple[Values | None, str]:
    """Return the values of an argument on this machine, and the reason if they differ."""
    if name in {"", "model"}:
        return (model_directory,), _RANDOM_WEIGHTS
    if name in _ADDED:
        return _ADDED[name]
    rule = _ARGUMENTS.get(name)
    return (rule.here(values, worker), rule.why(values, worker)) if rule else (values, "")


def _flag(name: str) -> str:
    return f"--{name}" if name else "MODEL"


def _text(values: Iterable[str] | None) -> str | None:
    return None if values is None else " ".join(values) or "set"
