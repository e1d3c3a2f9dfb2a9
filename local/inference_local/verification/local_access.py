"""Access to the processes of a local run, by the addresses and log files that it publishes."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from inference_blueprints.operate.verify.serving_access import Instance, Instances, ModelAddress
from inference_blueprints.serving.types import DeploymentPlan, Process
from inference_local.run_state import RunState
from inference_local.serving.served_process import ServedProcess

_TIMEOUT_SECONDS = 30.0
#: Pages are on the loopback interface, which no proxy of the user reaches.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """The processes of a local run."""

    state: RunState
    """What the run published."""
    answer_seconds: float
    """Longest time of one answer."""

    def instances(self, deployment: DeploymentPlan) -> Instances:
        """Return the processes of a deployment by their name in the plan."""
        return {
            process.name: [
                Instance(each.name, process.name, _unready(each))
                for each in self._published(deployment, process)
            ]
            for process in deployment.processes
        }

    def expected(self, deployment: DeploymentPlan, process: Process) -> int:
        """Return the number of processes that the run started, at least one."""
        return max(1, len(self._published(deployment, process)))

    def log(self, deployment: DeploymentPlan, instance: Instance) -> str:
        """Return the log of a process, with those of its earlier starts; empty if the file is gone."""
        try:
            return Path(self._process(deployment, instance).log_file).read_text(errors="replace")
        except OSError:
            return ""

    def metrics(self, deployment: DeploymentPlan, instance: Instance) -> str:
        """Return the metrics of a process; empty if it does not answer."""
        try:
            return _page(f"{self._process(deployment, instance).url}/metrics")
        except (OSError, HTTPException):
            return ""

    @contextmanager
    def open_frontend(self, deployment: DeploymentPlan, instance: Instance) -> Iterator[str]:
        """Yield the URL of a frontend."""
        yield self._process(deployment, instance).url

    def model_address(self, model: str) -> ModelAddress:
        """Return the address of the relay for a model."""
        (url,) = [each.base_url for each in self.state.models if each.name == model]
        return ModelAddress(url, only_in_vpc=False, command=None)

    def look_command(self, deployment: DeploymentPlan, process: Process) -> str:
        """Return the command that shows the ends of the logs of a process."""
        files = [each.log_file for each in self._published(deployment, process)]
        return f"tail {' '.join(files)}"

    def log_command(self, deployment: DeploymentPlan, instance: Instance | None, *words: str) -> str:
        """Return the command that searches log files."""
        names = {process.name for process in deployment.workers}
        files = [
            each.log_file
            for each in self.state.processes
            if each.release == deployment.release
            and (each.name == instance.name if instance else each.process in names)
        ]
        return f"grep -i {' '.join(f'-e {word}' for word in words)} {' '.join(files)}"

    def _published(self, deployment: DeploymentPlan, process: Process) -> list[ServedProcess]:
        return [
            each
            for each in self.state.processes
            if (each.release, each.process) == (deployment.release, process.name)
        ]

    def _process(self, deployment: DeploymentPlan, instance: Instance) -> ServedProcess:
        (found,) = [
            each
            for each in self.state.processes
            if (each.release, each.name) == (deployment.release, instance.name)
        ]
        return found


def _unready(process: ServedProcess) -> str:
    """Return why a process is not ready, according to its health; empty if it is."""
    try:
        _page(f"{process.url}{process.health_path}")
    except urllib.error.HTTPError as error:
        return f"{process.health_path} answers HTTP {error.code}"
    except (OSError, HTTPException) as error:
        return f"{process.health_path} does not answer: {error}"
    return ""


def _page(url: str) -> str:
    with _DIRECT.open(url, timeout=_TIMEOUT_SECONDS) as response:
        content: bytes = response.read()
        return content.decode(errors="replace")
