"""The plan's processes as commands for this machine.

Options and variables are those of ``python -m dynamo.frontend --help`` and ``python -m dynamo.mocker
--help``, release 1.6.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import inference_catalog as catalog
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers, scheduler_of
from inference_blueprints.serving.command_line import command_line, flag_values
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.stacks.dynamo import DYNAMO_PARSERS, THINKING_ARGUMENT
from inference_blueprints.serving.types import EnvironmentValue, FilePath, Process, SecretValue
from inference_contracts.units import GB
from inference_local.environments.dynamo import dynamo_python

# How a process of a local run is started.


@dataclass(frozen=True, slots=True)
class Launch:
    """The command of a process, and its whole environment."""

    command: list[str]
    environment: Mapping[str, str]


_LOOPBACK = "127.0.0.1"
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
# The simulator names these arguments as vLLM does.
_NAMES = ENGINES["vllm"].argument_names
_RANKS = "data-parallel-size"
_KV_BLOCKS = "num-gpu-blocks-override"
#: Processes find each other by files in ``DYN_FILE_KV``.
DISCOVERY = ("--discovery-backend", "file")
#: Runs by its path: an environment that only has Dynamo does not have this package.
_ENGINE = Path(__file__).with_name("simulated_engine.py")
#: Why discovery and the planes of requests and events are set on this machine.
CONNECTED = "processes find each other by files here; on EKS Dynamo's operator connects them"
#: Why processes have other addresses on this machine.
OWN_ADDRESS = "all workers share this machine, so each listens on a loopback address of its own"
#: Why files are elsewhere on this machine.
NO_SECRETS = "nothing is downloaded, so no process needs a key"
OWN_FOLDER = "all workers share this machine, so each deployment has a folder of its own"
_FILES_HERE = "every process reads the model's files from a folder; nothing is downloaded"
_READ_BY_PEOPLE = "logs are read by people here, as text"
#: Variables that let a frontend end at once.
FRONTEND_ENDS_AT_ONCE: Mapping[str, str] = {
    "DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "0",
    "DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "0",
}
#: Variable with the time that a worker serves on after it has left discovery, in seconds.
FINISH_SECONDS = "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS"


@dataclass(frozen=True, slots=True)
class SimulatedEngine:
    """The engine that a worker process on this machine simulates."""

    model_name: str
    """Name under which it registers."""
    model_directory: Path
    """Tokenizer and configuration."""
    arguments: tuple[str, ...]
    """The plan's arguments of the real engine."""
    workers: SimulatedWorkers
    profile_file: Path | None
    """Latency profile. None for the simulator's default curve."""


def frontend_command(process: Process, port: int) -> list[str]:
    """Return the command of the plan's frontend, with this machine's address and discovery.

    process: The frontend of the plan.
    port: Port to listen on. It overrides the plan's port, because the last of two equal options counts.
    """
    program = [dynamo_python(), *process.command[1:]]
    return [*program, *process.arguments, "--http-host", _LOOPBACK, "--http-port", str(port), *DISCOVERY]


def worker_command(engine: SimulatedEngine, workers: int) -> list[str]:
    """Return the command of a simulated engine with the plan's arguments for the real engine.

    Arguments that both engines have keep the plan's value, under the simulator's name. Others are computed.

    engine: The engine to simulate.
    workers: Number of workers in the process.
    """
    settings = engine.workers.settings
    scheduler = scheduler_of(settings)
    names, sizes = ENGINES[settings.engine].argument_names, _sizes_per_rank(engine)
    options: dict[str, str | int | float | Path] = {
        "--model-path": engine.model_directory,
        "--model-name": engine.model_name,
        "--num-workers": workers,
        "--engine-type": scheduler.name,
        f"--{_NAMES.block_size}": sizes[names.block_size],
        f"--{_NAMES.length}": sizes[names.length],
        f"--{_NAMES.sequences}": sizes[names.sequences],
        f"--{_NAMES.step_tokens}": sizes[names.step_tokens],
        f"--{_KV_BLOCKS}": _kv_blocks(engine),
        "--kv-bytes-per-token": engine.workers.kv_bytes_per_token,
    }
    for setting in scheduler.settings:
        # An option of one scheduler is the engine's argument with the scheduler's name as prefix.
        name = setting.replace("_", "-")
        options[f"--{scheduler.name}-{name}"] = sizes[name]
    if _RANKS in sizes:
        options[f"--{_RANKS}"] = sizes[_RANKS]
    if scheduler.host_blocks:
        options["--num-host-blocks"] = scheduler.host_blocks
    if engine.workers.transfer_bytes_per_second is not None:
        options["--disaggregation-mode"] = engine.workers.role
        options["--kv-transfer-bandwidth"] = engine.workers.transfer_bytes_per_second / GB
    if engine.profile_file:
        options["--planner-profile-data"] = engine.profile_file
    arguments = [str(word) for option in options.items() for word in option]
    arguments += (*_switches(engine), *_parsers(engine), *_thinking(engine))
    return [dynamo_python(), "-P", str(_ENGINE), *arguments, *DISCOVERY]


def _kv_blocks(engine: SimulatedEngine) -> int:
    """Return the blocks that a rank can use: those of the user's argument for vLLM, else the estimate.

    vLLM keeps one block empty (``BlockPool.null_block`` in ``vllm/v1/core/block_pool.py``, release 0.31.0).
    """
    settings, planned = engine.workers.settings, flag_values(engine.arguments)
    if settings.engine == "vllm" and _KV_BLOCKS in planned:
        return int(planned[_KV_BLOCKS]) - 1
    return settings.kv_blocks


def _switches(engine: SimulatedEngine) -> tuple[str, ...]:
    """Return the simulator's switch for a prefix cache that the plan's arguments switch off."""
    off = command_line(dict([ENGINES[engine.workers.settings.engine].argument_names.without_prefix_cache]))
    planned = engine.arguments
    if any(planned[start : start + len(off)] == off for start in range(len(planned))):
        return command_line(dict([_NAMES.without_prefix_cache]))
    return ()


def _thinking(engine: SimulatedEngine) -> tuple[str, ...]:
    """Return the planned default of thinking, also of vLLM's own server: a frontend applies it here."""
    planned = flag_values(engine.arguments)
    of_server = json.loads(planned.get("default-chat-template-kwargs", "{}")).get("thinking_mode")
    mode = planned.get(THINKING_ARGUMENT, of_server)
    return () if mode is None else command_line({THINKING_ARGUMENT: mode})


def _parsers(engine: SimulatedEngine) -> tuple[str, ...]:
    """Return the planned parsers of Dynamo's frontend, without those that download a vocabulary."""
    flags, planned = DYNAMO_PARSERS, flag_values(engine.arguments)
    downloading = {
        name
        for each in catalog.answer_formats().values()
        if each.vocabulary_host
        for name in (each.parsers[flags.program].reasoning, each.parsers[flags.program].tool_call)
    }
    names = {flag: planned[flag] for flag in (flags.reasoning, flags.tool_call) if flag in planned}
    return command_line({flag: name for flag, name in names.items() if name not in downloading})


def _sizes_per_rank(engine: SimulatedEngine) -> dict[str, int]:
    """Return the plan's sizes per data parallel rank, by the real engine's argument names."""
    settings = engine.workers.settings
    kind, values = ENGINES[settings.engine], flag_values(engine.arguments)
    sizes = {name: int(values[name]) for name in kind.argument_names.counts}
    if settings.data_parallel_size > 1:
        # TensorRT-LLM has no such argument: each device of its tensor size is a rank.
        sizes[_RANKS] = int(values.get(_RANKS, settings.data_parallel_size))
    divided = {name: sizes[name] // settings.data_parallel_size for name in kind.totals_over_ranks}
    return sizes | divided


def expand_variables(words: Iterable[str], variables: Mapping[str, str]) -> list[str]:
    """Replace each ``$(NAME)`` by the variable's value, as Kubernetes does in the arguments of a container.

    words: The arguments.
    variables: The environment of the process. Other names are left as they are.
    """
    return [_REFERENCE.sub(lambda found: variables.get(found[1], found[0]), word) for word in words]


def environment(
    planned: Mapping[str, EnvironmentValue], home: Path, address: str = _LOOPBACK
) -> dict[str, str]:
    """Return the whole environment of a process, and write the files that it names.

    planned: The plan's variables. Secrets are left out, because nothing is downloaded.
    home: A folder that only this deployment uses, for the discovery of its processes and Dynamo's cache.
    address: The address of the process, which replaces every address of the plan.
    """
    values = {
        name: _local_value(value, home, address)
        for name, value in planned.items()
        if not isinstance(value, SecretValue)
    }
    return values | {name: value for name, (value, _) in own_variables(home, address).items()}


def own_variables(home: Path, address: str) -> Mapping[str, tuple[str, str]]:
    """Return the variables that every process has on this machine, whatever the plan says, with the reasons.

    home, address: As for `environment`.
    """
    return {
        "HOME": (str(home), OWN_FOLDER),
        "HF_HUB_OFFLINE": ("1", _FILES_HERE),
        "DYN_SELF_HOST_METADATA": ("0", _FILES_HERE),
        "DYN_LOGGING_JSONL": ("false", _READ_BY_PEOPLE),
        "DYN_SDK_DISABLE_ANSI_LOGGING": ("1", _READ_BY_PEOPLE),
        "DYN_FILE_KV": (str(home / "discovery"), CONNECTED),
        "DYN_REQUEST_PLANE": ("tcp", CONNECTED),
        "DYN_EVENT_PLANE": ("zmq", CONNECTED),
        **dict.fromkeys(
            ("DYN_EVENT_PLANE_HOST", "DYN_TCP_RPC_HOST", "DYN_TCP_RESPONSE_STREAM_HOST", "DYN_SYSTEM_HOST"),
            (address, OWN_ADDRESS),
        ),
    }


def _local_value(value: EnvironmentValue, home: Path, address: str) -> str:
    """Return the value of a variable here. A file is written once for all processes of the deployment."""
    if isinstance(value, FilePath):
        file = home / value.name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value.text, encoding="utf-8")
        return str(file)
    return value if isinstance(value, str) else address
