"""What the acts of a repair have in common on every target: places, people, EC2, and Auto Scaling groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from gpu_health.case_store import CaseStore
from gpu_health.health_platform import HealthPlatform
from gpu_health.watched_node import WatchedNode, WatchedWorker
from gpu_health.worker_metrics import dcgm_readings
from inference_decisions.repairs.live_node import DcgmReading, LiveNode, RepairActionError, Verification
from inference_decisions.repairs.repair_case import RepairCase
from operations import aws_clients
from operations.operations_errors import MetricsError, OperationsError

#: Nodes that are read one by one, in two requests each. More are read in one list.
READ_ONE_BY_ONE: Final = 3
#: Longest subject of a message: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
_SUBJECT: Final = 100
#: Instances of one question for their Auto Scaling groups.
_GROUP_MEMBERS: Final = 50


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """How far the worst worker of a node is from its peers, in the newest window."""

    slower: float | None = None
    """Its slowdown, as a share. None if it is not known."""
    failing: float | None = None
    """Its share of failed requests, above that of the peers. None if it is not known."""
    peers: frozenset[str] = frozenset()
    """Groups of peers of all workers of the node."""


@dataclass(slots=True)
class CellRepairs(ABC):
    """The acts on one cell, with the methods of `RepairActions`. Each of them can be repeated.

    A subclass reads the cluster of a target and acts on it.
    """

    platform: HealthPlatform
    """The cell, and its settings."""
    store: CaseStore
    """Cases and places."""
    clock: Callable[[], float]
    """Returns the time, in seconds since the epoch."""
    figures: Mapping[str, WorkerFigures] = field(default_factory=dict)
    """What is known about the workers of nodes, by name of the node."""
    boots: dict[str, str] = field(default_factory=dict)
    """Identifiers of the boots in which cases were opened, by name of the node."""
    readings: dict[str, DcgmReading | None] = field(default_factory=dict)
    """What the exporters of some nodes said in this run, None if one was silent. Others are asked."""
    together: dict[str, tuple[float, WatchedNode | None]] = field(default_factory=dict)
    """When some nodes were read in one list, and what they are; None if one is gone. Others are read one by
    one. A node that was acted upon is read again."""

    @abstractmethod
    def nodes(self) -> Sequence[WatchedNode]:
        """Return all nodes of the cell. Raises OperationsError if the cluster does not answer."""

    @abstractmethod
    def node(self, name: str) -> WatchedNode | None:
        """Return a node. None if there is none. Raises OperationsError if the cluster does not answer."""

    @abstractmethod
    def workers(self, nodes: Sequence[WatchedNode]) -> list[WatchedWorker]:
        """Return the workers that are ready, in the order of their names.

        nodes: All nodes.
        Raises OperationsError if the cluster does not answer.
        """

    @abstractmethod
    def marked_case(self, node: WatchedNode) -> RepairCase:
        """Return the case that the mark of a node's cordon says.

        Raises ValueError if the mark has another form.
        """

    @abstractmethod
    def read_live(self, node: str) -> LiveNode | None:
        """Return the node as it is now. None if it is gone."""

    @abstractmethod
    def cordon(self, case: RepairCase) -> None:
        """Close the node, with the case as its mark: the case can be read from it if the table is lost."""

    @abstractmethod
    def uncordon(self, case: RepairCase) -> None:
        """Open the node again if the cordon is ours."""

    @abstractmethod
    def drain(self, case: RepairCase) -> None:
        """Start or continue moving serving processes away, which cuts no stream."""

    @abstractmethod
    def replace(self, case: RepairCase, live: LiveNode) -> None:
        """Ask the owner for another node, if this is still the one of the case."""

    @abstractmethod
    def verify(self, case: RepairCase) -> Verification:
        """Return whether a replacement serves."""

    def read_dcgm(self, nodes: Sequence[str]) -> None:
        """Read what the exporters of some nodes say, with few queries for many nodes."""
        cell, rules = self.platform.cell, self.platform.rules
        try:
            found = dcgm_readings(cell.metrics, cell.platform, nodes, rules, self.clock())
        except MetricsError:
            found = {}  # as if no exporter answered: nothing is proved or contradicted by it
        self.readings |= {node: found.get(node) for node in nodes}

    def read_together(
        self, cases: Sequence[RepairCase], nodes: Sequence[WatchedNode], read_at: float
    ) -> None:
        """Take the nodes of many cases from the list of all nodes, before they are closed.

        One by one would be two requests for each of a hundred nodes in alarm. An act reads its node again.

        nodes: All nodes.
        read_at: When they were read, in seconds since the epoch.
        Raises OperationsError if the cluster does not answer.
        """
        open_cases = [case for case in cases if case.state in ("suspected", "confirmed")]
        if len(open_cases) > READ_ONE_BY_ONE:
            listed = {node.name: node for node in nodes}
            self.together = {case.node: (read_at, listed.get(case.node)) for case in open_cases}
            self.read_rest_together(open_cases)

    @abstractmethod
    def read_rest_together(self, cases: Sequence[RepairCase]) -> None:
        """Read what else a decision needs before its node is closed, in few requests for many nodes."""

    def decided_at(self, node: str) -> float:
        """Return the time of a decision about a node: when it was read with others, else now."""
        return self.together[node][0] if node in self.together else self.clock()

    def dcgm(self, node: str) -> DcgmReading | None:
        """Return what the exporter of a node says. None if it is silent."""
        if node not in self.readings:
            self.read_dcgm([node])
        return self.readings[node]

    def pool_nodes(self, pool: str) -> Sequence[WatchedNode]:
        """Return the nodes of a pool."""
        return [node for node in self.nodes() if node.pool == pool]

    def reserve(self, case: RepairCase, places: int) -> bool:
        """Take a place of the pool and of the hour."""
        with acting("take a place"):
            per_hour = self.platform.settings.replacements_per_hour
            return self.store.take_place(case, places, per_hour, self.clock())

    def reboot(self, case: RepairCase, live: LiveNode) -> None:
        """Boot the instance again. It stays on its host, and keeps its disks.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RebootInstances.html: the call only queues
        a request, and a terminated instance is ignored. An instance that does not shut down within a few
        minutes is reset. The reboot is noted first: one whose answer is lost counts too.
        """
        if live.uid != case.node_uid:
            return
        with acting(f"reboot {case.node}"):
            self.store.note_reboot(case, self.clock())
            aws_clients.client("ec2").reboot_instances(InstanceIds=[live.instance])

    def release(self, case: RepairCase) -> None:
        """Give the place back. What is not given back now is when `minute` finds no open case for it."""
        with acting("give a place back"):
            self.store.give_place_back(case.pool, case.node_uid, self.clock())

    def notify(self, case: RepairCase, text: str) -> None:
        """Tell people by the topic, once per case and state."""
        with acting("tell people"):
            if self.store.was_reported(case, case.state, self.clock()):
                return
            self.tell(
                case.node,
                f"Node {case.node} ({case.instance or 'instance not known'}) of pool {case.pool}, cell"
                f" {self.platform.cell.name}: {text}\n"
                + "\n".join(f"- {each.kind} {each.code} by {each.source}" for each in case.evidence),
            )
            self.store.note_report(case, case.state, self.clock())

    def tell(self, about: str, text: str) -> None:
        """Tell people by the topic.

        about: Node or pool, for the subject.
        text: The message.
        """
        cell = self.platform.cell
        aws_clients.client("sns").publish(
            TopicArn=cell.topic_arn,
            Subject=f"GPU health of {cell.platform}: {about}"[:_SUBJECT],
            Message=text,
        )


def has_spare_place(reservation: str) -> bool:
    """Return whether a reservation has a place for another instance."""
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
    answer = aws_clients.client("ec2").describe_capacity_reservations(CapacityReservationIds=[reservation])
    return any(
        each["State"] == "active" and each.get("AvailableInstanceCount", 0) > 0
        for each in answer["CapacityReservations"]
    )


def terminate_in_group(instance: str) -> None:
    """Terminate the instance. Its group starts another one, because its desired size stays.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
    """
    group = group_of(instance)
    if group is None or str(group["LifecycleState"]).startswith("Terminat"):
        return
    aws_clients.client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=instance, ShouldDecrementDesiredCapacity=False
    )


def group_of(instance: str) -> Mapping[str, Any] | None:
    """Return the Auto Scaling group of an instance. None if it has none, or forgot it."""
    return groups_of([instance]).get(instance)


def groups_of(instances: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the Auto Scaling groups of instances, by instance. One that has none is left out.

    A call has at most 50 identifiers, and ignores those that do not exist:
    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingInstances.html
    """
    client = aws_clients.client("autoscaling")
    return {
        str(each["InstanceId"]): each
        for start in range(0, len(instances), _GROUP_MEMBERS)
        for each in client.describe_auto_scaling_instances(
            InstanceIds=list(instances[start : start + _GROUP_MEMBERS])
        )["AutoScalingInstances"]
    }


@contextmanager
def acting(what: str) -> Iterator[None]:
    """Turn the errors of services into that of an act, which is tried again."""
    try:
        yield
    except (OperationsError, ClientError, BotoCoreError) as error:
        raise RepairActionError(f"cannot {what}: {error}") from error
