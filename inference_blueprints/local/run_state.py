"""What other commands know of a run: a file that says where it is, and a lock that says whether it lives."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Literal

from inference_blueprints.deployment.signals.signal_store_address import StoreAddress
from inference_blueprints.errors import UserError
from inference_blueprints.targets.local.platform_parts import PlatformPart

_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RunningModel:
    """A model that answers.

    Parameters
    ----------
    name
        Name under which the OpenAI API serves it.
    base_url
        Base URL of the OpenAI API, ending in ``/v1``.
    context_length
        Prompt and answer together at the most, in tokens.
    """

    name: str
    base_url: str
    context_length: int


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """A batch API that answers.

    Parameters
    ----------
    base_url
        Base URL for clients of the OpenAI API, ending in ``/v1``.
    platform
        ``metadata.name``, for which tokens are made.
    team, role
        Who submits jobs from this machine: a team, and the ARN of one of its roles.
    environment
        Variables that point AWS clients at the emulator; its credentials are no secret.
    """

    base_url: str
    platform: str
    team: str
    role: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunningSignals:
    """A signal store that answers.

    Parameters
    ----------
    address
        How it is read.
    environment
        Variables with the credentials that its tokens are signed with, which are no secret.
    """

    address: StoreAddress
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as other commands see it.

    Parameters
    ----------
    pid
        Process that owns the run.
    phase
        ``starting`` until the report is written, then ``ready``.
    parts
        What of the run is real, emulated, simulated and stubbed.
    batch
        Its batch API, where workers answer jobs.
    signals
        Its signal store, where the blueprint has one.
    """

    pid: int
    blueprint: str
    phase: Literal["starting", "ready"] = "starting"
    models: tuple[RunningModel, ...] = ()
    parts: tuple[PlatformPart, ...] = ()
    batch: RunningBatch | None = None
    signals: RunningSignals | None = None


class RunClaim:
    """The right to use a run directory; the kernel takes it back when the owner dies.

    Parameters
    ----------
    run_directory
        Folder of the run.
    """

    def __init__(self, run_directory: Path) -> None:
        self._path = _state_path(run_directory)

    def publish(self, state: RunState) -> None:
        """Tell other commands where the run is.

        Parameters
        ----------
        state
            What they are told.
        """
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(state), indent=2), encoding="utf-8")
        draft.replace(self._path)


@contextmanager
def claim(run_directory: Path) -> Iterator[RunClaim]:
    """Hold a run directory for the length of a run.

    Parameters
    ----------
    run_directory
        Folder of the run; created if it is not there.

    Raises
    ------
    UserError
        If another run holds it.
    """
    run_directory.mkdir(parents=True, exist_ok=True)
    with _lock_path(run_directory).open("a") as lock:
        if not _lock(lock):
            raise UserError(
                f"{run_directory}: another run is using this folder; "
                "stop it with `blueprints local down`, or choose another --run-directory"
            )
        _state_path(run_directory).unlink(missing_ok=True)
        try:
            yield RunClaim(run_directory)
        finally:
            _state_path(run_directory).unlink(missing_ok=True)


def live_state(run_directory: Path) -> RunState | None:
    """Return the state of the run that lives in a folder, or None.

    Parameters
    ----------
    run_directory
        Folder of the run.
    """
    if not _is_locked(run_directory):
        return None
    try:
        document = json.loads(_state_path(run_directory).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    models = tuple(RunningModel(**model) for model in document.pop("models"))
    parts = tuple(PlatformPart(**part) for part in document.pop("parts"))
    batch, signals = document.pop("batch"), document.pop("signals")
    return RunState(
        **document,
        models=models,
        parts=parts,
        batch=RunningBatch(**batch) if batch else None,
        signals=RunningSignals(StoreAddress(**signals["address"]), signals["environment"])
        if signals
        else None,
    )


def stop(run_directory: Path, timeout_seconds: float = 30.0) -> bool:
    """End the run that lives in a folder and wait until it has cleaned up.

    Parameters
    ----------
    run_directory
        Folder of the run.
    timeout_seconds
        How long to wait.

    Returns
    -------
    bool
        False if nothing was running.

    Raises
    ------
    UserError
        If it does not end in time.
    """
    state = live_state(run_directory)
    if state is None:
        return False
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_seconds
    while _is_locked(run_directory):
        if time.monotonic() > deadline:
            raise UserError(
                f"process {state.pid} has not ended after {timeout_seconds:.0f} s; its log says why"
            )
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
