"""A policy process of the front door, asked as Envoy asks it, with a log as Envoy writes it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from inference_contracts import door_headers, door_log
from inference_contracts.door_configuration import (
    DoorBudget,
    DoorConfiguration,
    DoorModel,
    DoorPrices,
    DoorTarget,
    DoorTeam,
)
from inference_contracts.door_settings import DoorSettings, as_environment

CHAT: Final = "/v1/chat/completions"
PATIENCE_SECONDS: Final = 20.0
#: Nano-dollars of a token in and out.
PRICES: Final = DoorPrices(200, 800)


def a_model(name: str = "m", **facts: Any) -> DoorModel:
    """Return a model with one target."""
    plain = DoorModel(
        name=name,
        aliases=(),
        targets=(DoorTarget("primary", "served", 100, None),),
        prices=PRICES,
        teams=None,
        priority=50,
        context_length=8192,
        default_output_tokens=100,
    )
    return replace(plain, **facts)


def a_configuration(*budgets: DoorBudget, **facts: Any) -> DoorConfiguration:
    """Return a configuration with one model and the teams `red` and `blue`."""
    plain = DoorConfiguration(
        platform="test",
        models=(a_model(),),
        teams=(DoorTeam("red", ()), DoorTeam("blue", ())),
        budgets=budgets,
        issuers=(),
        api_keys=True,
    )
    return replace(plain, **facts)


#: Envoy's part of a configuration, of which the policy knows nothing.
NO_ENVOY: Final[Mapping[str, Any]] = {"listeners": {"resources": []}, "clusters": {"resources": []}}


@dataclass(frozen=True)
class Answer:
    """An answer of the policy."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """Code of an error."""
        found: str = json.loads(self.body)["error"]["code"]
        return found


def as_object(configuration: DoorConfiguration, envoy: Mapping[str, Any] = NO_ENVOY) -> str:
    """Return the object that a policy watches."""
    return json.dumps({"policy": configuration.to_values(), "envoy": envoy})


class UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("policy", timeout=PATIENCE_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_SECONDS)
        self.sock.connect(self._path)


class PolicyProcess:
    """One replica's policy. `folder` has all its files, which a restart finds again."""

    def __init__(self, folder: Path, configured: DoorConfiguration, /, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._environment, self._envoy = settings.pop("environment", {}), settings.pop("envoy", NO_ENVOY)
        self.folder = folder
        self.settings = DoorSettings(
            replica=folder.name,
            socket=str(folder / "policy.sock"),
            access_log=str(folder / "access.log"),
            state_folder=str(folder),
            **{
                "envoy_folder": str(folder),
                "configuration": str(folder / "configuration.json"),
                **settings,
            },
        )
        if self.settings.configuration.startswith("/"):
            self.configure(configured)
        Path(self.settings.access_log).touch()
        self._connection: UnixConnection | None = None
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, and return when it answers."""
        Path(self.settings.socket).unlink(missing_ok=True)
        self._connection = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "front_door"],
            env={"PATH": os.environ["PATH"], **self._environment, **as_environment(self.settings)},
        )
        wait_for(lambda: self.process.poll() is not None or self._ready())
        return self.process

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def configure(self, configuration: DoorConfiguration, envoy: Mapping[str, Any] | None = None) -> None:
        """Replace its configuration, and Envoy's part of it if there is another."""
        self._envoy = envoy or self._envoy
        new = Path(f"{self.settings.configuration}.new")
        new.write_text(as_object(configuration, self._envoy))
        new.rename(self.settings.configuration)

    def ask(self, key: str, *, path: str = CHAT, model: str = "m", **headers: Any) -> Answer:
        """Ask for a decision as Envoy does. Other headers are named with underscores."""
        sent = {
            "authorization": f"Bearer {key}",
            door_headers.MODEL: json.dumps(model),
            door_headers.BYTES: "100",
            door_headers.STREAM: "true",
            **{name.replace("_", "-"): str(value) for name, value in headers.items()},
        }
        return self.get(f"{door_headers.DECIDE}{path}", sent)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Return the answer to a request."""
        if self._connection is None:
            self._connection = UnixConnection(self.settings.socket)
        try:
            self._connection.request("POST", path, headers=dict(headers or {}))
            answer = self._connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        except OSError:
            self._connection = None
            raise

    def log(self, answer: Answer, **facts: Any) -> None:
        """Write the line of an admitted request, as Envoy does at its end."""
        write_lines(Path(self.settings.access_log), [log_line(answer, **facts)])

    def metric(self, name: str) -> float:
        """Return a number of the metrics."""
        lines = self.get(door_headers.METRICS_PATH).body.decode().splitlines()
        rows = [line.rpartition(" ") for line in lines]
        return next((float(value) for row, _, value in rows if row == f"door_{name}"), 0.0)

    def _ready(self) -> bool:
        try:
            return self.get(door_headers.READY_PATH).status == 200
        except OSError:
            return False


def log_line(answer: Answer, **facts: Any) -> str:
    """Return the line of a request: 12 tokens in, 5 out."""
    decided = {
        "reservation": answer.headers[door_headers.RESERVATION],
        "reserved": answer.headers[door_headers.RESERVED],
        "team": answer.headers[door_headers.TEAM],
        "project": answer.headers.get(door_headers.PROJECT),
        "key": answer.headers.get(door_headers.KEY),
        "model": answer.headers[door_headers.PUBLIC],
        "target": answer.headers[door_headers.TARGET],
    }
    plain = {
        "id": "d0f4e1a6-0000-4000-8000-000000000000",
        **{name: value for name, value in decided.items() if value is not None},
        "stream": "true",
        "path": CHAT,
        "status": 200,
        "upstream": "127.0.0.1:8000",
        door_log.INPUT_TOKENS: 12,
        door_log.OUTPUT_TOKENS: 5,
        "sent": 1000,
        "start": "2026-11-29T12:00:00.000Z",
        "ms": 500,
    }
    return json.dumps({name: value for name, value in {**plain, **facts}.items() if value is not None})


def write_lines(file: Path, lines: list[str]) -> None:
    """Append lines."""
    with file.open("a") as out:
        out.write("".join(f"{line}\n" for line in lines))


def wait_for(holds: Callable[[], object], seconds: float = PATIENCE_SECONDS, *, pause: float = 0.01) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(pause)
