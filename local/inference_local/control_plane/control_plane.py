"""Runs a real Kubernetes control plane on loopback, with KWOK nodes."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.single_build import Report
from inference_local.control_plane import artefacts, build
from inference_local.control_plane.certificates import Authority, KeyPair
from inference_local.processes.child_processes import Programs
from inference_local.processes.free_ports import free_ports

LOOPBACK = "127.0.0.1"
#: KWOK manages nodes with this annotation: they become ready, and their pods run.
FAKE_NODE_ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
#: A job's pod with this annotation runs until it is deleted. Other pods of jobs complete at once.
ENDLESS_ANNOTATION = {"kwok.x-k8s.io/endless": "true"}
_ADMINISTRATORS = "system:masters"
_SERVICE_RANGE = "10.96.0.0/16"
#: Go collects garbage less often. This saves processor time and costs a few hundred megabytes.
_MEMORY_FOR_TIME = {"GOGC": "400"}
_STAGES = ("node/fast/node-initialize.yaml", "node/heartbeat-with-lease/*.yaml", "pod/fast/*.yaml")


class ControlPlane(Programs):
    """etcd, API server, controller manager, scheduler and KWOK. Use it as a context manager.

    The programs are built once, see `build`. They listen only on loopback, on ports that the operating system
    chooses, and use TLS with certificates of an authority in the same folder.

    run_directory: Folder for certificates, data and logs. It is created.
    report: Called with a line for each program that is found in the cache or built.
    api_server_flags: Further flags of the API server, such as a configuration of webhook token
        authentication.
    controller_flags: Further flags of the controller manager, such as how often it looks at
        HorizontalPodAutoscalers.
    """

    def __init__(
        self,
        run_directory: Path,
        *,
        report: Report,
        api_server_flags: Sequence[str] = (),
        controller_flags: Sequence[str] = (),
    ) -> None:
        # Their data is not kept, so they need no orderly shutdown.
        super().__init__(grace_seconds=2)
        self._run_directory = run_directory.resolve()
        self._report = report
        self._api_server_flags = tuple(api_server_flags)
        self._controller_flags = tuple(controller_flags)
        self._authority = Authority(self._run_directory / "certificates")
        self._ports = dict(
            zip(("etcd", "peer", "api", "controllers", "scheduler", "kwok"), free_ports(6), strict=True)
        )

    @property
    def run_directory(self) -> Path:
        """The folder of certificates, data and logs."""
        return self._run_directory

    @property
    def address(self) -> str:
        """The URL of the API server, such as ``https://127.0.0.1:40001``."""
        return f"https://{LOOPBACK}:{self._ports['api']}"

    @property
    def authority(self) -> Authority:
        """The authority that signs the certificates of the server and of clients."""
        return self._authority

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator."""
        return self._run_directory / "administrator.kubeconfig"

    @property
    def kubectl(self) -> Kubectl:
        """A client with administrator permissions."""
        return Kubectl(self.kubeconfig)

    def log_path(self, name: str) -> Path:
        """Return the log file of a program."""
        return self._run_directory / "logs" / f"{name}.log"

    def _start(self) -> None:
        etcd = build.program(artefacts.ETCD, self._report)
        kubernetes = build.program(artefacts.KUBERNETES, self._report)
        kwok = build.program(artefacts.KWOK, self._report)
        server = self._authority.issue("kube-apiserver")
        self._write_kubeconfig("administrator", groups=(_ADMINISTRATORS,))
        self._start_etcd(etcd / "etcd", server)
        self._start_api_server(kubernetes / "kube-apiserver", server)
        self._wait_until_ready()
        self._start_controllers(kubernetes, server)
        self._start_kwok(kwok / "kwok")
        self.kubectl.wait_until(
            lambda: bool(self.kubectl.run("get", "serviceaccount", "default", "--output", "name")),
            "the controller manager",
        )

    def _start_etcd(self, program: Path, server: KeyPair) -> None:
        client, peer = (f"https://{LOOPBACK}:{self._ports[name]}" for name in ("etcd", "peer"))
        certificates = [
            *("cert-file", server.certificate, "key-file", server.key),
            *("trusted-ca-file", self._authority.certificate),
        ]
        names, files = certificates[::2], certificates[1::2]
        self._start_program(
            "etcd",
            [
                program,
                *("--data-dir", self._run_directory / "etcd", "--log-level", "warn"),
                # The data is deleted after the run.
                "--unsafe-no-fsync",
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", f"default={peer}"),
                *(f"--{name}={file}" for name, file in zip(names, files, strict=True)),
                *(f"--peer-{name}={file}" for name, file in zip(names, files, strict=True)),
                *("--client-cert-auth", "--peer-client-cert-auth"),
            ],
        )

    def _start_api_server(self, program: Path, server: KeyPair) -> None:
        self._start_program(
            "kube-apiserver",
            [
                program,
                f"--etcd-servers=https://{LOOPBACK}:{self._ports['etcd']}",
                f"--etcd-cafile={self._authority.certificate}",
                f"--etcd-certfile={server.certificate}",
                f"--etcd-keyfile={server.key}",
                f"--bind-address={LOOPBACK}",
                f"--advertise-address={LOOPBACK}",
                # An endpoint must not have a loopback address.
                "--endpoint-reconciler-type=none",
                f"--secure-port={self._ports['api']}",
                f"--tls-cert-file={server.certificate}",
                f"--tls-private-key-file={server.key}",
                f"--client-ca-file={self._authority.certificate}",
                "--authorization-mode=RBAC",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-signing-key-file={server.key}",
                f"--service-account-key-file={server.certificate}",
                f"--service-cluster-ip-range={_SERVICE_RANGE}",
                "--allow-privileged=true",
                *self._api_server_flags,
            ],
        )

    def _wait_until_ready(self) -> None:
        def ready() -> bool:
            self.check()
            return self.kubectl.run("get", "--raw", "/readyz") == "ok"

        self.kubectl.wait_until(ready, "the API server")

    def _start_controllers(self, programs: Path, server: KeyPair) -> None:
        manager = self._write_kubeconfig("system:kube-controller-manager")
        self._start_program(
            "kube-controller-manager",
            [
                programs / "kube-controller-manager",
                *(f"--kubeconfig={manager}", f"--bind-address={LOOPBACK}"),
                *(f"--secure-port={self._ports['controllers']}", "--leader-elect=false"),
                f"--service-account-private-key-file={server.key}",
                f"--root-ca-file={self._authority.certificate}",
                "--use-service-account-credentials=true",
                *self._controller_flags,
            ],
        )
        scheduler = self._write_kubeconfig("system:kube-scheduler")
        self._start_program(
            "kube-scheduler",
            [
                programs / "kube-scheduler",
                *(f"--kubeconfig={scheduler}", f"--bind-address={LOOPBACK}"),
                *(f"--secure-port={self._ports['scheduler']}", "--leader-elect=false"),
            ],
        )

    def _start_kwok(self, program: Path) -> None:
        stages = build.module_files(artefacts.KWOK_STAGES, self._report) / "kustomize" / "stage"
        # Without its operator, KWOK has no built-in stages.
        paths = [path for pattern in _STAGES for path in sorted(stages.glob(pattern))]
        configuration = self._run_directory / "kwok.yaml"
        configuration.write_text(yaml.safe_dump_all(_stages(paths)))
        selector = "=".join(*FAKE_NODE_ANNOTATION.items())
        self._start_program(
            "kwok",
            [
                program,
                *(f"--config={configuration}", f"--kubeconfig={self.kubeconfig}"),
                *("--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={selector}"),
                "--node-lease-duration-seconds=40",
                f"--server-address={LOOPBACK}:{self._ports['kwok']}",
            ],
        )

    def _start_program(self, name: str, command: Sequence[str | Path]) -> None:
        self._processes.start(
            name,
            command,
            environment={
                "HOME": str(self._run_directory),
                "PATH": os.environ.get("PATH", os.defpath),
                **_MEMORY_FOR_TIME,
            },
            log_path=self.log_path(name),
            working_directory=self._run_directory,
        )

    def _write_kubeconfig(self, user: str, *, groups: tuple[str, ...] = ()) -> Path:
        pair = self._authority.issue(user, groups=groups)
        path = self._run_directory / f"{user.replace(':', '-')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(kubeconfig(self.address, self._authority.certificate, pair)))
        return path


def _stages(paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the stages of nodes and pods. The stage that completes a job's pod skips endless pods."""
    (name,) = ENDLESS_ANNOTATION
    endless = {"key": f'.metadata.annotations["{name}"]', "operator": "DoesNotExist"}
    for path in paths:
        stage = yaml.safe_load(path.read_text())
        if stage["kind"] == "Stage":
            if stage["metadata"]["name"] == "pod-complete":
                stage["spec"]["selector"]["matchExpressions"].append(endless)
            yield stage


def kubeconfig(address: str, authority: Path, pair: KeyPair) -> dict[str, object]:
    """Return a kubeconfig that contains all certificates, so that it can be copied.

    address: URL of the API server.
    authority: Certificate of the authority that signed the server's certificate.
    """

    def encoded(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    cluster = {"server": address, "certificate-authority-data": encoded(authority)}
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "local", "user": user}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
        "current-context": "local",
    }
