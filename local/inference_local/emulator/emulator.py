"""Starts and stops the AWS emulator."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3

from inference_blueprints import tools
from inference_contracts.errors import UserError
from inference_local.emulator.alarms import EVALUATION_PATH
from inference_local.emulator.ecs.agent.container_command import StandInImage, write_images
from inference_local.emulator.records import RecordedRelease, recorded_releases
from inference_local.emulator.serverless_cache import AUTHORITY_FILE
from inference_local.processes.child_processes import Programs, log_tail
from inference_local.serving.isolation import Isolation

LOOPBACK = "127.0.0.1"
DEFAULT_ACCOUNT = "123456789012"
_SECRET = "none"  # noqa: S105 - no secret: the emulator is reached from this machine alone
_ECS_TARGET = "AmazonEC2ContainerServiceV20141113"
_START_SECONDS = 60.0
_EVALUATION_SECONDS = 60.0
_POLL_SECONDS = 0.05
_BACKLOG = 1024


class Emulator(Programs):
    """The AWS emulator on a free loopback port. Use it as a context manager.

    Its state is in memory and in the run folder.

    run_directory: Folder for logs, temporary files and recorded Kubernetes objects.
    region: The emulated region.
    account: The emulated account, 12 digits.
    control_plane: Whether EKS clusters are real Kubernetes API servers and IAM is enforced. Otherwise,
        objects are only recorded.
    enforces_iam: Whether policies of roles, buckets and queues are enforced also without a control plane.
    alarm_speed: How much faster than time alarms are evaluated: with 60, a period of a minute lasts a second.
        With 0, they are evaluated only by `evaluate_alarms`.
    metrics_url: URL of a Prometheus, or of what answers as it does, for alarms on PromQL. Without it, they
        stay OK.
    task_images: What stands for the images of ECS tasks. Without it, tasks are only recorded.
    task_speed: How much faster than time the control plane of ECS waits.
    isolation: Network namespace, opened with `as_root`, in which the emulator runs. Then hosts and tasks of
        ECS have networks of their own in it, and a load balancer answers at `models_url`.
    build_variables: Variables of builds, with the addresses of what is not AWS.
    """

    def __init__(
        self,
        run_directory: Path,
        *,
        region: str,
        account: str = DEFAULT_ACCOUNT,
        control_plane: bool = False,
        enforces_iam: bool = False,
        alarm_speed: float = 1.0,
        metrics_url: str | None = None,
        task_images: Mapping[str, StandInImage] | None = None,
        task_speed: float = 1.0,
        isolation: Isolation | None = None,
        build_variables: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(grace_seconds=5)
        self._run_directory = run_directory.resolve()
        self._region = region
        self._account = account
        self._control_plane = control_plane
        self._enforces_iam = enforces_iam or control_plane
        self._alarm_speed = alarm_speed
        self._metrics_url = metrics_url
        self._task_images = task_images
        self._task_speed = task_speed
        self._isolation = isolation
        self._build_variables = build_variables or {}
        self._port = 0
        self._models_port = 0

    @property
    def account(self) -> str:
        """The emulated account."""
        return self._account

    @property
    def region(self) -> str:
        """The emulated region."""
        return self._region

    @property
    def endpoint_url(self) -> str:
        """The URL of the emulator."""
        return f"http://{LOOPBACK}:{self._port}"

    @property
    def models_url(self) -> str:
        """The URL of the load balancer of ECS' services. It reads the host name of a request."""
        return f"http://{LOOPBACK}:{self._models_port}"

    @property
    def pid(self) -> int:
        """The process id of the emulator."""
        return self._processes.processes[0].pid

    @property
    def log_path(self) -> Path:
        """The log file of the emulator."""
        return self._run_directory / "emulator.log"

    @property
    def records_directory(self) -> Path:
        """The folder of recorded Kubernetes objects and Helm releases, see `records`."""
        return self._run_directory / "kubernetes"

    @property
    def control_planes_directory(self) -> Path:
        """The folder of real control planes."""
        return self._run_directory / "control-plane"

    @property
    def cache_authority(self) -> Path:
        """Certificate of the authority of serverless caches. It exists once a stack has a cache."""
        return self._caches_directory / AUTHORITY_FILE

    @property
    def tasks_directory(self) -> Path:
        """The folder of ECS tasks: their logs, hosts and shared file systems."""
        return self._run_directory / "tasks"

    @property
    def _caches_directory(self) -> Path:
        return self._run_directory / "caches"

    def environment(self) -> dict[str, str]:
        """Return the variables that point all AWS clients at the emulator only.

        The credentials are not secret: the access key is the account number.
        """
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ENDPOINT_URL_S3": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": self._account,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_REGION": self._region,
            "AWS_DEFAULT_REGION": self._region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def client(self, service: str) -> Any:
        """Return a boto3 client for an emulated AWS service."""
        return boto3.client(
            service,
            endpoint_url=self.endpoint_url,
            region_name=self._region,
            aws_access_key_id=self._account,
            aws_secret_access_key=_SECRET,
        )

    def evaluate_alarms(self, at_seconds: float) -> tuple[str, ...]:
        """Evaluate all alarms as of a moment, and act on changes with that time.

        at_seconds: The moment, in seconds since 1970. Metrics and log events need times before it. The
            emulator forgets metrics that are older than two weeks.
        Returns: One line per metric alarm or contributor that changed: its name and both states.
        """
        address = f"{self.endpoint_url}{EVALUATION_PATH}?at={at_seconds!r}"
        request = urllib.request.Request(address, method="POST")  # noqa: S310 - our own address
        with urllib.request.urlopen(request, timeout=_EVALUATION_SECONDS) as response:  # noqa: S310
            return tuple(json.load(response))

    def task_fault(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Make a fault of ECS that has no call in AWS, see `EcsEmulation`.

        name: ``KillTask``, ``KillHost``, ``CutHost``, ``DisconnectAgent``, ``ReconnectAgent``,
            ``BlockLaunches``, ``HoldReboots``, ``LoseGpu``, or ``Processes``, which only looks.
        arguments: Its parameters.
        """
        key = f"AWS4-HMAC-SHA256 Credential={self._account}/20260101/{self._region}/ecs/aws4_request"
        request = urllib.request.Request(  # noqa: S310 - our own address
            self.endpoint_url,
            data=json.dumps(arguments).encode(),
            headers={"X-Amz-Target": f"{_ECS_TARGET}.StandIn{name}", "Authorization": key},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=_EVALUATION_SECONDS) as response:  # noqa: S310
            return dict(json.load(response))

    def recorded_releases(self) -> tuple[RecordedRelease, ...]:
        """Return the Helm releases. Those that are not ``rendered`` are only recorded."""
        return recorded_releases(self.records_directory)

    def _start(self) -> None:
        temporary = self._run_directory / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        self.records_directory.mkdir(exist_ok=True)
        if self._task_images is not None:
            self.tasks_directory.mkdir(exist_ok=True)
            write_images(self._task_images, self._images_path)
            self._hosts_path.write_text("127.0.0.1 localhost\n")
        isolated = self._isolation is not None
        with (
            socket.create_server((LOOPBACK, 0)) as listener,
            socket.create_server((LOOPBACK, 0), backlog=_BACKLOG) as models,
        ):
            self._port = listener.getsockname()[1]
            self._models_port = models.getsockname()[1]
            command: list[str | Path] = [
                *(sys.executable, "-m", "inference_local.emulator.launcher"),
                *("--socket", str(listener.fileno())),
                *("--records", self.records_directory, "--helm", tools.helm()),
                *("--caches", self._caches_directory),
                *("--alarm-speed", str(self._alarm_speed)),
                *(("--metrics", self._metrics_url) if self._metrics_url else ()),
                *self._task_options(),
                *(("--control-plane", self.control_planes_directory) if self._control_plane else ()),
                *(("--models-socket", str(models.fileno())) if isolated else ()),
            ]
            self._processes.start(
                "AWS emulator",
                self._isolation.command(command, self._hosts_path) if self._isolation else command,
                environment=self._process_environment(temporary),
                log_path=self.log_path,
                pass_fds=(listener.fileno(), *((models.fileno(),) if isolated else ())),
            )
        self._wait_until_healthy()

    @property
    def _images_path(self) -> Path:
        return self.tasks_directory / "images.json"

    @property
    def _hosts_path(self) -> Path:
        return self.tasks_directory / "names"

    def _task_options(self) -> list[str | Path]:
        if self._task_images is None:
            return []
        speed = str(self._task_speed)
        return [
            *("--tasks", self.tasks_directory, "--task-names", self._hosts_path),
            *("--task-images", self._images_path, "--task-speed", speed),
        ]

    def _process_environment(self, temporary: Path) -> dict[str, str]:
        path = f"{tools.node().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {
            "PATH": path,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HOME": str(self._run_directory),
            "TMPDIR": str(temporary),
            **{f"TASK_{name}": value for name, value in self.environment().items()},
            **{f"BUILD_{name}": value for name, value in self._build_variables.items()},
            "GATEWAY_PORT": str(self._port),
            "BIND_HOST": LOOPBACK,
            "MINISTACK_HOST": LOOPBACK,
            "MINISTACK_REGION": self._region,
            "MINISTACK_ACCOUNT_ID": self._account,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AUTH": str(self._enforces_iam).lower(),
            # Tools are unpacked once per machine, not once per run.
            "XDG_CACHE_HOME": str(tools.cache_directory().parent.parent),
            # These would listen on all interfaces, in addition to the gateway.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
        }

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_healthy():
            self.check()
            if time.monotonic() > deadline:
                raise UserError(
                    f"the AWS emulator did not answer within {_START_SECONDS:.0f} s; "
                    f"the end of {self.log_path}:\n{log_tail(self.log_path)}"
                )
            time.sleep(_POLL_SECONDS)

    def _is_healthy(self) -> bool:
        try:
            address = f"{self.endpoint_url}/_ministack/health"
            with urllib.request.urlopen(address, timeout=2) as response:  # noqa: S310 - our own address
                return isinstance(json.load(response), dict)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
