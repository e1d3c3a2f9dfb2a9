"""The Kubernetes API server of a platform: connection, kubectl, and ports of pods."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from inference_blueprints import tools
from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_contracts.cluster_token import cluster_token
from inference_contracts.errors import UserError

# Runs the same kubectl binary that CDK runs at deployment, against one API server.

_TIMEOUT_SECONDS = 120
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")

KubernetesObject = Mapping[str, Any]


class KubectlFailed(Exception):  # noqa: N818 - the name says what happened
    """Kubectl exited with an error; the message is kubectl's."""


class Kubectl:
    """Runs kubectl against one API server.

    kubeconfig: File with the server and the credentials.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def run(self, *arguments: str, document: Mapping[str, Any] | None = None) -> str:
        """Run kubectl and return its output.

        arguments: Arguments such as ``get``, ``nodes``.
        document: Standard input, for arguments with ``--filename -``.
        Raises KubectlFailed if kubectl exits with an error.
        """
        try:
            result = subprocess.run(
                self._command(*arguments),
                input=None if document is None else json.dumps(document),
                env=self._environment(),
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlFailed(f"no answer within {_TIMEOUT_SECONDS} s") from error
        if result.returncode:
            raise KubectlFailed(result.stderr.strip())
        return result.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that keeps running, such as ``port-forward``; the caller stops it.

        Returns: Standard output includes the errors.
        """
        return subprocess.Popen(
            self._command(*arguments),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def get(self, *arguments: str) -> list[dict[str, Any]]:
        """Return objects from the server.

        arguments: What follows ``kubectl get`` for a list, such as ``pods``, ``--all-namespaces``.
        Raises KubectlFailed if kubectl exits with an error.
        """
        items: list[dict[str, Any]] = json.loads(self.run("get", *arguments, "--output", "json"))["items"]
        return items

    def apply(self, objects: Sequence[KubernetesObject]) -> None:
        """Create or change objects by server-side apply; unknown fields are errors.

        objects: Objects to apply, all in one call.
        Raises KubectlFailed with the server's message on every object that it refuses.
        """
        self._apply(objects)

    def check(self, objects: Sequence[KubernetesObject]) -> None:
        """Let the server check objects in a dry run, without creating them.

        This includes schemas, enumerations, CEL rules, admission plug-ins and webhooks. The namespaces and
        the definitions of custom resources must exist.

        objects: Objects to check, all in one call.
        Raises KubectlFailed with the server's message on every object that it refuses.
        """
        self._apply(objects, "--dry-run=server")

    def wait_until(self, condition: Callable[[], bool], what: str, *, timeout_seconds: float = 240) -> None:
        """Wait until a condition holds.

        condition: Called after increasing pauses of at most a second; an error of kubectl counts as False.
        what: Description for the error message.
        timeout_seconds: Maximum time; long enough for a busy machine.
        Raises TimeoutError if the condition does not hold in time; the last error of kubectl is added.
        """
        deadline = time.monotonic() + timeout_seconds
        reason = ""
        pause = _FIRST_PAUSE_SECONDS
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except KubectlFailed as failure:
                reason = f": {failure}"
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_PAUSE_SECONDS)
        raise TimeoutError(f"{what}: not within {timeout_seconds:.0f} s{reason}")

    def _command(self, *arguments: str) -> list[str]:
        return [str(tools.kubectl()), "--kubeconfig", str(self._kubeconfig), *arguments]

    def _environment(self) -> dict[str, str]:
        """Return an environment without the user's kubectl configuration, but with the user's proxy."""
        passed = {name: os.environ[name] for name in _PROXY_VARIABLES if name in os.environ}
        home = str(self._kubeconfig.parent)
        return {"HOME": home, "PATH": os.environ.get("PATH", os.defpath), **passed}

    def _apply(self, objects: Sequence[KubernetesObject], *flags: str) -> None:
        self.run(
            *("apply", "--server-side", "--force-conflicts", "--validate=strict"),
            *(*flags, "--filename", "-"),
            document={"apiVersion": "v1", "kind": "List", "items": list(objects)},
        )


def connect(account: Account, cluster: str, directory: Path) -> Kubectl:
    """Return kubectl for a cluster, with the permissions of the environment's credentials.

    account: Account of the cluster.
    directory: A private folder for the token.
    Raises UserError if there is no such cluster, or AWS refuses to describe it.
    """
    description = describe(account, cluster)
    if "endpoint" not in description:
        raise UserError(f"the cluster {cluster} is {description['status']} and has no API server")
    path = directory / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(_kubeconfig(description, cluster_token(account.credentials, account.region, cluster)))
    return Kubectl(path)


def describe(account: Account, cluster: str) -> dict[str, Any]:
    """Return EKS's description of a cluster.

    account: Where the cluster is.
    Raises UserError if there is no such cluster, or AWS refuses to describe it.
    """
    eks = account.client("eks")
    with readable_errors():
        try:
            description: dict[str, Any] = eks.describe_cluster(name=cluster)["cluster"]
        except eks.exceptions.ResourceNotFoundException as error:
            message = f"the cluster {cluster} does not exist in account {account.number}, {account.region}"
            raise UserError(message) from error
    return description


def _kubeconfig(description: dict[str, Any], bearer: str) -> str:
    """Return a kubeconfig with server, authority and token, as JSON."""
    server = {
        "server": description["endpoint"],
        "certificate-authority-data": description["certificateAuthority"]["data"],
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": server}],
            "users": [{"name": "user", "user": {"token": bearer}}],
            "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
            "current-context": "context",
        }
    )


_LOOPBACK = "127.0.0.1"
_OPEN = re.compile(rf"Forwarding from {re.escape(_LOOPBACK)}:(\d+) ->")
#: Maximum time in seconds for kubectl to open the port.
OPENING_SECONDS = 30.0
_READ_BYTES = 4096


class Starter(Protocol):
    """The part of kubectl that is needed here."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kubectl with arguments."""


@contextmanager
def forward_port(kubectl: Starter, namespace: str, pod: str, port: int) -> Iterator[str]:
    """Forward a free port of the loopback interface to a pod.

    port: TCP port of the pod.
    Yields: Address such as ``http://127.0.0.1:40123``.
    Raises KubectlFailed if the port does not open, with kubectl's message.
    """
    target = ("--namespace", namespace, f"pod/{pod}", f":{port}")
    with kubectl.start("port-forward", "--address", _LOOPBACK, *target) as process:
        try:
            yield f"http://{_LOOPBACK}:{_local_port(process)}"
        finally:
            process.terminate()


def _local_port(process: subprocess.Popen[str]) -> str:
    """Read kubectl's output until it names the port."""
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    said = ""
    deadline = time.monotonic() + OPENING_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([process.stdout], [], [], left)[0]:
            break
        # Bypasses the stream's buffer, which would hide lines from `select`.
        piece = os.read(process.stdout.fileno(), _READ_BYTES)
        if not piece:
            raise KubectlFailed(said.strip() or "kubectl port-forward ended without output")
        said += piece.decode(errors="replace")
        if found := _OPEN.search(said):
            return found[1]
    raise KubectlFailed(f"the port was not opened within {OPENING_SECONDS:.0f} s: {said.strip()}")
