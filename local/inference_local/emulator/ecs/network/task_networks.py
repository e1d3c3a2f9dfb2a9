"""The networks of tasks: a namespace with an address for each host and for each task of its own interface.

Sources: task-networking-awsvpc.html ("Each task ENI is assigned a private IPv4 address by default"), API
TaskDefinition (``networkMode``: tasks on Fargate need awsvpc), networking-networkmode-host.html ("the
networking of the container is tied directly to the underlying host": its ports are those of the host). Here
an interface is a veth pair on a bridge (veth(4), network_namespaces(7)), inside the namespace of the
emulator, which nothing outside reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from inference_local.processes.child_processes import ProcessDied, ProcessGroup, RunningProcess
from inference_local.serving import namespace
from inference_local.serving.isolation import Isolation, open_isolation, started_in

#: First two bytes of the addresses of hosts and tasks, and the address at which tasks reach AWS.
VPC_PREFIX: Final = "10.64"
VPC_ADDRESS: Final = f"{VPC_PREFIX}.255.254"
_PREFIX_LENGTH: Final = 16
_BRIDGE: Final = "vpc"
_INTERFACE: Final = "eth0"


class TaskNetworkError(Exception):
    """A host or a task cannot have a network."""


class TaskNetworks(Protocol):
    """Gives tasks their network."""

    service_address: str
    """Address at which the agent and AWS answer tasks."""
    has_mounts: bool
    """Whether commands may have mounts of their own (`isolation.with_mounts`)."""

    def command(self, name: str, address: str, words: Sequence[str]) -> list[str]:
        """Return a command that runs words in the network of a host or a task.

        name: Id of the host or the task. Its network is created at its first use.
        Raises TaskNetworkError if it cannot be created.
        """

    def close(self, name: str) -> None:
        """Give a network up, if it exists. It goes with its last process, whose connections end."""

    def cut(self, name: str) -> None:
        """Cut a network off: its processes run on, and nothing that is sent to it gets an answer."""


class SharedNetwork:
    """All tasks use the network of this process: hosts are addresses of its loopback interface."""

    service_address = "127.0.0.1"
    has_mounts = False

    def command(self, name: str, address: str, words: Sequence[str]) -> list[str]:  # noqa: ARG002 - see Protocol
        """Return the words."""
        return list(words)

    def close(self, name: str) -> None:
        """Do nothing."""

    def cut(self, name: str) -> None:
        """Do nothing: hosts of one network cannot be cut off."""


@dataclass(frozen=True)
class _OpenedNetwork:
    """A namespace, the process that holds it, and the outer end of its interface."""

    isolation: Isolation
    holder: RunningProcess
    interface: str


class OwnNetworks:
    """A network namespace for each host and task. Use it in a process that is root of its own namespace.

    processes: Group of the processes that hold the namespaces.
    log_path: File for their output.
    """

    service_address = VPC_ADDRESS
    has_mounts = True

    def __init__(self, processes: ProcessGroup, log_path: Path) -> None:
        self._processes = processes
        self._log_path = log_path
        self._opened: dict[str, _OpenedNetwork] = {}
        self._count = 0
        with IPRoute() as links:
            links.link("add", ifname=_BRIDGE, kind="bridge")
            [bridge] = links.link_lookup(ifname=_BRIDGE)
            links.addr("add", index=bridge, address=VPC_ADDRESS, prefixlen=_PREFIX_LENGTH)
            links.link("set", index=bridge, state="up")
        self._bridge = bridge

    def command(self, name: str, address: str, words: Sequence[str]) -> list[str]:
        """Return a command that runs words in a network, see `TaskNetworks`."""
        if name not in self._opened:
            try:
                self._opened[name] = self._open(name, address)
            except (NetlinkError, OSError, ProcessDied) as error:
                raise TaskNetworkError(f"{address} has no network: {error}") from error
        return self._opened[name].isolation.command(words)

    def close(self, name: str) -> None:
        """End the process that holds the namespace."""
        if opened := self._opened.pop(name, None):
            self._processes.kill(opened.holder)

    def cut(self, name: str) -> None:
        """Remove the interface."""
        with IPRoute() as links:
            links.link("del", ifname=self._opened[name].interface)

    def _open(self, name: str, address: str) -> _OpenedNetwork:
        started: list[RunningProcess] = []
        hold = started_in(self._processes, self._log_path, f"network {name[:8]}")

        def start(command: Sequence[str], descriptors: Sequence[int]) -> RunningProcess:
            started.append(hold(command, descriptors))
            return started[0]

        isolation = open_isolation(start, as_root=True)
        if isolation.holder is None:
            raise TaskNetworkError(f"{address} has no network: {isolation.reason}")
        return _OpenedNetwork(isolation, started[0], self._connect(isolation.holder, address))

    def _connect(self, holder: int, address: str) -> str:
        """Give a namespace an interface in the VPC, and return the name of its end outside."""
        self._count += 1
        outer = f"task{self._count}"
        with IPRoute() as links:
            links.link("add", ifname=outer, kind="veth", peer={"ifname": _INTERFACE, "net_ns_pid": holder})
            [index] = links.link_lookup(ifname=outer)
            links.link("set", index=index, master=self._bridge, state="up")
        with ThreadPoolExecutor(max_workers=1) as thread:  # a thread that ends inside the namespace
            thread.submit(_configure, holder, address).result()
        return outer


def _configure(holder: int, address: str) -> None:
    """Give the interface of a namespace its address. The thread stays in the namespace."""
    namespace.enter_network(holder)
    with IPRoute() as links:
        [index] = links.link_lookup(ifname=_INTERFACE)
        links.addr("add", index=index, address=address, prefixlen=_PREFIX_LENGTH)
        links.link("set", index=index, state="up")
        links.route("add", dst="default", gateway=VPC_ADDRESS)
