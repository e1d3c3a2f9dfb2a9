"""A small platform on real etcd: three members, two frontends, simulated workers that start as tasks.

It runs within the network namespace of its test. Hosts are loopback addresses.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from task_start.live_check import PORTS_FILE

from inference_blueprints.resources import root
from inference_contracts import discovery_roles, ecs_names
from inference_contracts.discovery_store import MEMBER_FILES, member_arguments
from inference_contracts.task_start import TaskStart, port_reference

MODEL = "model"
MEMBERS = [f"127.0.0.{10 + index}" for index in range(ecs_names.DISCOVERY_MEMBERS)]
FRONTENDS = [f"127.0.0.{30 + index}" for index in range(2)]
#: All workers share one host, so their blocks of ports differ.
WORKER_HOST = "127.0.0.50"
NAMESPACE = ecs_names.namespace_of("model-main")
#: Another deployment, which has a certificate too.
OTHER = ecs_names.namespace_of("other-main")


class _Agent(BaseHTTPRequestHandler):
    """Answers every task of the host with the host's address, as in `task_start.task_metadata`."""

    def do_GET(self) -> None:
        body = json.dumps({"Networks": [{"IPv4Addresses": [WORKER_HOST]}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


class Platform:
    """Processes by name.

    folder: Folder of logs, data and certificates; `secrets.json` in it holds the secrets of members and
        clients.
    etcd: The program.
    """

    def __init__(self, folder: Path, etcd: Path) -> None:
        self._folder, self._etcd = folder, etcd
        secrets = json.loads((folder / "secrets.json").read_text())
        self._clients: Mapping[str, str] = secrets["clients"]
        self._administrator: Mapping[str, str] = secrets["administrator"]
        #: Whose certificate the next process shows: a namespace, or the client of an earlier release.
        self.shown = NAMESPACE
        self._certificates = folder / "certificates"
        self._certificates.mkdir()
        for key, name in MEMBER_FILES.items():
            (self._certificates / name).write_text(secrets["members"][key])
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._agent = ThreadingHTTPServer((WORKER_HOST, 0), _Agent)
        threading.Thread(target=self._agent.serve_forever, daemon=True).start()

    def start_member(self, index: int) -> None:
        """Start a member; if it ran before, with its data."""
        arguments = member_arguments(
            MEMBERS,
            index,
            data=self._folder / f"data-{index}",
            certificates=self._certificates,
            listen=MEMBERS[index],
            loopback=MEMBERS[index],
        )
        self._start(f"member-{index}", [str(self._etcd), *arguments], {})

    def start_roles(self) -> None:
        """Start the task that keeps users and roles."""
        secrets = {name: self._administrator[key] for key, name in discovery_roles.ADMINISTRATOR.items()}
        self._start(
            "roles",
            [sys.executable, "-m", "discovery_roles"],
            {
                **secrets,
                discovery_roles.ENDPOINTS: self._dynamo["ETCD_ENDPOINTS"],
                discovery_roles.NAMESPACES: f"{NAMESPACE},{OTHER}",
                discovery_roles.STATUS: str(self._folder / "roles-status"),
            },
        )

    def log(self, name: str) -> str:
        """Return what a process has printed."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def start_frontend(self, index: int) -> None:
        host = FRONTENDS[index]
        words = ["dynamo.frontend", "--http-host", host, "--http-port", "8000", "--router-mode", "kv"]
        words += ["--router-replica-sync", "--migration-limit", "3", "--discovery-backend", "etcd"]
        hosts = dict.fromkeys((*_ADDRESSES, "DYN_SYSTEM_HOST"), host)
        namespace = {"DYN_NAMESPACE_PREFIX": NAMESPACE}
        self._start(
            f"frontend-{index}", [sys.executable, "-m", *words], {**self._dynamo, **hosts, **namespace}
        )

    def start_worker(self, name: str, *, suffix: str | None, length: int) -> None:
        """Start a worker as a task of ECS starts.

        suffix: Mark of its configuration. None if workers of all configurations share a name.
        length: Longest context, the part of the configuration that differs.
        """
        words = ["inference_local.serving.simulated_engine", "--discovery-backend", "etcd"]
        words += ["--model-path", str(self._folder / "model"), "--model-name", MODEL, "--num-workers", "1"]
        words += ["--block-size", "64", "--num-gpu-blocks-override", "4000", "--max-num-seqs", "64"]
        words += ["--max-model-len", str(length)]
        document = TaskStart(network="host", ports={"system": 0}, address=(*_ADDRESSES, "DYN_SYSTEM_HOST"))
        temporary = self._folder / f"tmp-{name}"
        temporary.mkdir()
        self._start(
            name,
            [sys.executable, "-m", "task_start", "--", sys.executable, "-m", *words],
            {
                **self._dynamo,
                **({"DYN_NAMESPACE_WORKER_SUFFIX": suffix} if suffix else {}),
                "DYN_NAMESPACE": NAMESPACE,
                "DYN_SYSTEM_PORT": port_reference("system"),
                "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS": "30",
                "ECS_CONTAINER_METADATA_URI_V4": f"http://{WORKER_HOST}:{self._agent.server_address[1]}/v4",
                ecs_names.TASK_START_VARIABLE: document.as_text(),
                "TMPDIR": str(temporary),
            },
        )

    def signal(self, name: str, number: signal.Signals) -> None:
        self.running[name].send_signal(number)

    def kill(self, name: str) -> None:
        """Kill a process and forget it."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def ports(self, name: str) -> str | None:
        """Return address and port of a worker's health page, which it chose at its start."""
        file = self._folder / f"tmp-{name}" / PORTS_FILE
        if not file.is_file():
            return None
        known = json.loads(file.read_text())
        return f"{known['address']}:{known['ports']['system']}"

    def ended(self) -> list[str]:
        """Return the processes that ended by themselves."""
        return [f"{name}: {code}" for name, each in self.running.items() if (code := each.poll()) is not None]

    def stop(self) -> None:
        for name in tuple(self.running):
            self.kill(name)
        self._agent.shutdown()

    @property
    def _dynamo(self) -> dict[str, str]:
        endpoints = ",".join(f"https://{host}:{ecs_names.DISCOVERY_PORT}" for host in MEMBERS)
        return {
            "ETCD_ENDPOINTS": endpoints,
            "ETCD_LEASE_TTL": str(ecs_names.LEASE_SECONDS),
            **{
                variable: self._clients[key]
                for variable, key in ecs_names.discovery_secret_keys(self.shown).items()
            },
            "DYN_REQUEST_PLANE": "tcp",
            "DYN_EVENT_PLANE": "zmq",
            "DYN_DISCOVERY_BACKEND": "etcd",
            "DYN_SELF_HOST_METADATA": "0",
            "DYN_LOG": "warn",
            "HF_HUB_OFFLINE": "1",
        }

    def _start(self, name: str, command: Sequence[str], variables: Mapping[str, str]) -> None:
        environment = {
            # With the mark by which the test's process group finds what is left.
            **os.environ,
            "HOME": str(self._folder),
            "PYTHONPATH": os.pathsep.join([str(root()), str(root() / "runtime")]),
            **variables,
        }
        with (self._folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=self._folder
            )


#: Variables with which a process tells others its address.
_ADDRESSES = ("DYN_TCP_RPC_HOST", "DYN_TCP_RESPONSE_STREAM_HOST", "DYN_EVENT_PLANE_HOST")
