"""The state of a run for other commands: a file with its addresses, and a lock that is held while it runs."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Literal

from inference_blueprints.operate.signals import StoreAddress
from inference_contracts.errors import UserError
from inference_contracts.streaming_job import JobDoor
from inference_local.serving.engine_names import EngineName
from inference_local.serving.local_endpoint import ServedProcess
from inference_local.serving.platform_parts import PlatformPart, Replacement

_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RunningModel:
    """A running model."""

    name: str
    """Name under which the OpenAI API serves it."""
    base_url: str
    """Base URL of the OpenAI API, ending in ``/v1``."""
    context_length: int
    """Maximum length of prompt and answer together, in tokens."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """URLs of the model, without ``/v1``: its own, and those of queues and streaming jobs with deployments of
    their own, by the first label of the host name."""


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """A running batch API."""

    base_url: str
    """Base URL for clients of the OpenAI API, ending in ``/v1``."""
    platform: str
    """``metadata.name``. Tokens are valid for this platform only."""
    team: str
    """The team that submits jobs from this machine."""
    role: str
    """The ARN of one of its roles."""
    environment: Mapping[str, str]
    """Variables that point AWS clients at the emulator. Its credentials are not secret."""


@dataclass(frozen=True, slots=True)
class RunningSignals:
    """A running signal store."""

    address: StoreAddress
    environment: Mapping[str, str]
    """Variables with the credentials that sign its tokens. They are not secret."""


@dataclass(frozen=True, slots=True)
class RunningDoor:
    """A running front door."""

    base_url: str
    """Base URL of the OpenAI API, ending in ``/v1``."""
    model: str
    """Public name of a model to try."""
    team: str
    """A team that may use it."""
    keys: Mapping[str, str]
    """An API key of each team. They are valid for this run only."""


@dataclass(frozen=True, slots=True)
class StreamDoor:
    """A front door on this machine that a job sends its requests through."""

    url: str
    """Its address, without ``/v1``."""
    job: JobDoor
    """What the job is told."""
    environment: Mapping[str, str]
    """Variables that point AWS clients at the emulator, which has the job's key."""


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as other commands see it."""

    pid: int
    """Process that owns the run."""
    blueprint: str
    phase: Literal["starting", "ready"] = "starting"
    """``starting`` until the report is written, then ``ready``."""
    models: tuple[RunningModel, ...] = ()
    """Its models. Empty until they answer."""
    parts: tuple[PlatformPart, ...] = ()
    """Which parts of the run are real, emulated, simulated or stubbed."""
    batch: RunningBatch | None = None
    """Its batch API. None if no workers run."""
    signals: RunningSignals | None = None
    """Its signal store. None if the blueprint has none."""
    engines: EngineName = EngineName.SIMULATED
    replacements: tuple[Replacement, ...] = ()
    """Settings of the plan that have another value on this machine."""
    processes: tuple[ServedProcess, ...] = ()
    """Its frontends and worker processes."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that point AWS clients at the emulator. Empty until the stacks are deployed."""
    door: RunningDoor | None = None
    """Its front door. None if the blueprint has none, and until it answers."""

    def variables(self) -> dict[str, str]:
        """Return the variables that clients need: of OpenAI, of AWS, and of signals.

        Those of OpenAI are for the front door, or without one for the first model.
        """
        found = {}
        if self.door is not None:
            key = self.door.keys.get(self.door.team, "none")
            found = {"OPENAI_BASE_URL": self.door.base_url, "OPENAI_API_KEY": key}
        elif self.models:
            found = {"OPENAI_BASE_URL": self.models[0].base_url, "OPENAI_API_KEY": "none"}
        signals = self.signals.address.environment() if self.signals else {}
        return {**found, **self.environment, **signals}


class RunClaim:
    """A lock on a run directory. The kernel releases it when the owner dies."""

    def __init__(self, run_directory: Path) -> None:
        self._path = _state_path(run_directory)

    def publish(self, state: RunState) -> None:
        """Write the state of the run for other commands."""
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(state), indent=2), encoding="utf-8")
        draft.replace(self._path)


@contextmanager
def claim(run_directory: Path) -> Iterator[RunClaim]:
    """Lock a run directory for the duration of a run.

    run_directory: Folder of the run. It is created if it does not exist.
    Raises UserError if another run holds the directory, or it cannot be written.
    """
    try:
        run_directory.mkdir(parents=True, exist_ok=True)
        opened = _lock_path(run_directory).open("a")
    except OSError as error:
        raise UserError(
            f"--run-directory {run_directory}: cannot hold a run: {error.strerror}; choose another folder"
        ) from error
    with opened as lock:
        if not _lock(lock):
            # Who typed `make run` knows neither the command behind it nor its options.
            make = "MAKELEVEL" in os.environ
            end = "" if make else "stop it with `blueprints local down`, or choose another --run-directory; "
            raise UserError(
                f"{run_directory}: another run is using this folder; {end}"
                f"{'end that `make run`' if make else 'or end it'} with Ctrl-C in its terminal"
            )
        _state_path(run_directory).unlink(missing_ok=True)
        try:
            yield RunClaim(run_directory)
        finally:
            _state_path(run_directory).unlink(missing_ok=True)


def live_state(run_directory: Path) -> RunState | None:
    """Return the state of the run that uses a folder. None if there is none."""
    if not _is_locked(run_directory):
        return None
    try:
        document = json.loads(_state_path(run_directory).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    models = tuple(RunningModel(**model) for model in document.pop("models"))
    parts = tuple(PlatformPart(**part) for part in document.pop("parts"))
    replacements = tuple(Replacement(**each) for each in document.pop("replacements"))
    processes = tuple(ServedProcess(**each) for each in document.pop("processes"))
    engines = EngineName(document.pop("engines"))
    batch, signals, door = (document.pop(name) for name in ("batch", "signals", "door"))
    return RunState(
        **document,
        models=models,
        parts=parts,
        engines=engines,
        replacements=replacements,
        processes=processes,
        batch=RunningBatch(**batch) if batch else None,
        door=RunningDoor(**door) if door else None,
        signals=RunningSignals(StoreAddress(**signals["address"]), signals["environment"])
        if signals
        else None,
    )


def stop(run_directory: Path, timeout_seconds: float = 30.0) -> bool:
    """Stop the run that uses a folder, and wait until it has cleaned up.

    timeout_seconds: How long to wait.
    Returns: False if nothing was running.
    Raises UserError if the run does not end in time.
    """
    state = live_state(run_directory)
    if state is None:
        return False
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_seconds
    while _is_locked(run_directory):
        if time.monotonic() > deadline:
            raise UserError(f"process {state.pid} has not ended after {timeout_seconds:.0f} s; see its log")
        time.sleep(_POLL_SECONDS)
    return True


def _is_locked(run_directory: Path) -> bool:
    try:
        with _lock_path(run_directory).open("r+") as lock:
            return not _lock(lock)
    except FileNotFoundError:
        return False


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_path(run_directory: Path) -> Path:
    return run_directory / "run.lock"


def _state_path(run_directory: Path) -> Path:
    return run_directory / "state.json"
