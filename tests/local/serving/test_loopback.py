"""Nobody else on the network can reach what is served."""

import contextlib
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing
from tests.local.serving.conftest import Served

_LISTENING = "0A"
_LOOPBACK = "0100007F"  # 127.0.0.1 as /proc/net/tcp writes it


def _sockets_of(group: ProcessGroup) -> set[str]:
    """Return the inodes of every socket that the group's processes hold."""
    pids = {process.pid for process in group.processes}
    pids |= {child.pid for pid in pids for child in psutil.Process(pid).children(recursive=True)}
    links = set()
    for descriptor in (each for pid in pids for each in Path(f"/proc/{pid}/fd").iterdir()):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.add(str(descriptor.readlink()))
    return {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}


def _listening_addresses(group: ProcessGroup) -> set[tuple[str, int]]:
    """Return where the group listens in the network namespace of this test: address and port."""
    sockets = _sockets_of(group)
    assert sockets
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in sockets:
                address, port = fields[1].split(":")
                addresses.add((address, int(port, 16)))
    return addresses


@pytest.fixture
def namespaces() -> None:
    """Skip where this machine gives nobody a network namespace; the table of parts is held to that below."""
    attempts = [["unshare", "--net", "true"], ["unshare", "--user", "--net", "true"]]
    if all(subprocess.run(attempt, capture_output=True, check=False).returncode for attempt in attempts):
        pytest.skip("this machine gives no network namespaces")


@pytest.mark.usefixtures("namespaces")
def test_only_the_endpoint_listens_and_only_on_loopback(served: Served) -> None:
    pages = [each.url for each in served.serving.served_processes()]
    urls = [served.endpoint.base_url, *served.endpoint.metrics_urls, *pages]
    assert _listening_addresses(served.processes) == {(_LOOPBACK, urlsplit(url).port) for url in urls}


@pytest.mark.usefixtures("namespaces")
def test_the_namespace_has_no_other_interface_than_loopback(served: Served) -> None:
    frontend = next(each for each in served.processes.processes if each.name.startswith("frontend"))
    devices = Path(f"/proc/{frontend.pid}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]


def test_without_isolation_the_table_admits_what_can_be_seen(tmp_path: Path, quickstart: Blueprint) -> None:
    with ProcessGroup() as group:
        serving = LocalServing(build_plan(quickstart), quickstart, tmp_path, group, isolate=False)
        with serving:
            serving.start(lambda _: None)
            exposed = {address for address, _ in _listening_addresses(group)} - {_LOOPBACK}
            network = serving.parts()[-1]
    assert exposed, "Dynamo listens on loopback alone by now: the namespace is no longer needed"
    assert (network.name, network.state) == ("Network of the models", "stubbed")
    assert "all interfaces" in network.detail


@pytest.mark.parametrize("url", ["/health", "/live", "/metrics"])
def test_health_and_metrics_answer(served: Served, url: str) -> None:
    answer = served.client.with_options(base_url=served.endpoint.base_url.removesuffix("/v1")).get(
        url, cast_to=str
    )
    assert answer
