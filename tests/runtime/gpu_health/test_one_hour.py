"""One simulated hour, event by event, through the handlers on the emulator: as in the simulation of a fleet.

The table, the freeze switch, the topic, the alarms on hardware and their rule are those of the emulator that
`blueprints local` starts. The nodes are the simulated ones, behind an API server of the tests.

What the exporters of the nodes say is recorded and queried by a real Prometheus. The emulator evaluates the
alarms of the synthesised template each minute, and the template's rule chooses the events. One thing differs:
the rule's target is a queue in place of the function, so that the handlers run at the simulated time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from gpu_health import fault_alarms, minute
from inference_blueprints.resources import root
from inference_catalog.gpu_faults import fleet_faults, gpu_faults_file
from inference_contracts import health_names
from inference_decisions.repairs.fault_rules import FaultRules
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.worker_windows import WorkerWindows
from inference_local.emulator.emulator import Emulator
from inference_local.simulators.fleet.fleet_events import FleetEvents, GreyFailure, HardwareFault, SharedEvent
from inference_local.simulators.fleet.health_simulation import FleetRun, HealthSimulation
from tests.runtime.gpu_health.fake_cluster import FakeCluster, node_object, pod_object
from tests.runtime.gpu_health.fleet_exporter import STEP, FleetExporter
from tests.runtime.gpu_health.world import NOW, QUIET, HealthWorld, prepared
from tests.runtime.operations.fresh_process import REGION, begin_anew
from tests.unit.local.simulators.small_fleet import one_release

pytestmark = pytest.mark.clock

MINUTES = 60
POOL = "0"
#: A synthesised platform with GPU health. `make verify` compares it with what the app synthesises.
TEMPLATE = root() / "tests/templates/recorded/capacity-and-health.json"
PLATFORM = "capacity"
SETTINGS = HealthSettings(action="replace", repaired_by={POOL: "gpuHealth"})
#: A worker that becomes slow, a broken GPU, an error of an application, and a rack that is slow for a while.
EVENTS = FleetEvents(
    grey=(GreyFailure(5, 930.0, 0.5),),
    hardware=(
        HardwareFault(9, 2200.0, "xid", "79", broken=True),
        HardwareFault(3, 700.0, "xid", "31", broken=False),
    ),
    shared=(SharedEvent("rack", 2, 3000.0, 3400.0, slower=0.5),),
)


class SimulatedCluster(FakeCluster):
    """An API server whose nodes are those of a simulation."""

    simulation: HourOfHandlers

    def refresh(self) -> None:
        """Show the nodes and pods as they are now."""
        nodes, now, layout = self.simulation.nodes, self.simulation.nodes.now, self.simulation.layout
        marks = {name: each["metadata"]["annotations"] for name, each in self.nodes.items()}
        for store in (self.nodes, self.pods, self.claims):
            store.clear()
        for number in range(layout.nodes):
            name = nodes.name(number)
            live = nodes.read_live(name)
            if live is None:
                continue
            since = self.simulation.started.get(name, -86400.0)
            node = node_object(
                name, created=NOW + since, pool=POOL, rack=live.rack, allocatable=live.gpus_allocatable
            )
            node["metadata"]["annotations"] = marks.get(name, {})
            if live.cordoned:
                node["spec"]["unschedulable"] = True
            pods = [
                pod_object(f"worker-{worker}-{name}", name, ready=NOW + since)
                for worker in layout.workers_of(number)
            ]
            self.add_node(node, *(pods if live.serving_pods else []))
            self.samples.nodes[name] = {"gpus": float(live.gpus_allocatable)}
        del now

    def _kubernetes(
        self, method: str, path: str, query: dict[str, str], body: Any
    ) -> tuple[int, dict[str, Any]]:
        answer = super()._kubernetes(method, path, query, body)
        if method != "GET":
            self.refresh()
        return answer

    def patched(self, name: str, change: Any) -> None:
        case: Any = SimpleNamespace(node=name)
        if change["spec"]["unschedulable"]:
            self.simulation.nodes.cordon(case)
        else:
            self.simulation.nodes.uncordon(case)

    def _evict(self, name: str) -> tuple[int, dict[str, Any]]:
        case: Any = SimpleNamespace(node=self.pods[name]["spec"]["nodeName"])
        self.simulation.nodes.drain(case)
        return 201, {"status": "Success"}

    def claim_deleted(self, claim: str) -> None:
        name = claim.removeprefix("claim-")
        case: Any = SimpleNamespace(node=name, node_uid=name)
        live: Any = SimpleNamespace(uid=name)
        self.simulation.nodes.replace(case, live)


class HourOfHandlers(HealthSimulation):
    """The same fleet, whose decisions are those of the handlers.

    The base class draws the fleet, lets time pass and keeps the score; what it decided itself is replaced.
    """

    def __init__(self, cluster: SimulatedCluster, world: HealthWorld, alarms: HardwareAlarms) -> None:
        super().__init__(
            one_release(16, racks=4),
            EVENTS,
            settings=SETTINGS,
            rules=FaultRules.parsed(gpu_faults_file().read_text()),
            figures=fleet_faults(),
            seed=1,
        )
        self.nodes, self.layout = self._nodes, self._layout
        self.started: dict[str, float] = {}
        self._cluster, self._world, self._alarms = cluster, world, alarms
        self._scored = dict[str, str]()
        #: When the event about each fault came.
        self.arrivals = dict[HardwareFault, float]()
        self._exporter = FleetExporter(
            PLATFORM,
            POOL,
            self._running,
            EVENTS.hardware,
            [alarm["EvaluationCriteria"]["PromQLCriteria"]["Query"] for alarm in alarms.alarms],
            began=NOW,
            minutes=MINUTES,
        )
        self._exporter.scrape(0)
        cluster.alarm_query = self._exporter.answer
        cluster.simulation = self
        cluster.on_claim_deleted = cluster.claim_deleted

    def run(self, minutes: int) -> FleetRun:
        delays = fleet_faults().delays
        late: WorkerWindows | None = None
        for number in range(minutes):
            now = (number + 1) * 60.0 + delays["window_lag_seconds"] + delays["invocation_seconds"]
            self._hardware(until=now)
            self._pass_time(now)
            reported = self._metrics.minute(number)
            if late is not None:
                self._put(number * 60.0, late)
            self._put((number + 1) * 60.0, reported.at_once)
            late = reported.later
            minute.handle({}, None)
            self._score(now)
        return self.run_so_far

    def _hardware(self, until: float) -> None:
        """Let the alarms be evaluated at the last full minute, and handle the events that they send."""
        step = int(until // STEP)
        at = float(step * STEP)
        self._exporter.scrape(step)
        for event in self._alarms.evaluated(NOW + at):
            attributes = event["detail"]["alarmContributor"]["attributes"]
            fault = next(
                each
                for each in EVENTS.hardware
                if self._nodes.name(each.node) == attributes["node"] and each.code == attributes["code"]
            )
            assert fault not in self.arrivals
            self.arrivals[fault] = at
            self._pass_time(at)
            if fault.broken:
                self._nodes.broken.add(fault.node)
                self._metrics.stop(fault.node, fault.at)
            fault_alarms.handle(event, None)
            self._score(at)

    def _running(self) -> dict[int, str]:
        names = {place: self._nodes.name(place) for place in range(self._layout.nodes)}
        return {place: name for place, name in names.items() if self._nodes.read_live(name) is not None}

    def _pass_time(self, now: float) -> None:
        before = {number: self._nodes.name(number) for number in range(self._layout.nodes)}
        serves = {number: each.serves_at for number, each in self._nodes._absent.items()}
        self._served(now)
        for number, name in before.items():
            if self._nodes.name(number) != name:
                self.started[self._nodes.name(number)] = serves[number]
        self._world.now = NOW + now
        self._cluster.refresh()

    def _put(self, at: float, windows: WorkerWindows) -> None:
        matrices = {
            health_names.WORKER_LOAD: windows.load,
            health_names.WORKER_LATENCY: windows.latency,
            health_names.WORKER_REQUESTS: windows.requests,
            health_names.WORKER_FAILED: windows.failed,
        }
        for worker in range(self._layout.workers):
            pod = f"worker-{worker}-{self._nodes.name(int(self._layout.node[worker]))}"
            for series, values in matrices.items():
                if numpy.isfinite(values[0, worker]):
                    self._cluster.samples.put(NOW + at, series, pod, float(values[0, worker]))

    def _score(self, now: float) -> None:
        """Keep the score as the base class does, by what the table says."""
        for case in self._world.store().cases(self._world.now):
            before = self._scored.get(case.node, "")
            if before == "" and "confirmed" in case.times:
                self._found(case, now)
                self._scored[case.node] = before = "confirmed"
            if before == "confirmed" and "cordoned" in case.times:
                self._nodes.now = now
                self._cordoned(replace(case, cell="0"), now)
                self._scored[case.node] = "cordoned"


class HardwareAlarms:
    """The alarms on hardware of the template and their rule, deployed, with a queue for the rule's events."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        every = json.loads(TEMPLATE.read_text("utf-8"))["Operations"]["Resources"]
        chosen = {
            name: resource
            for name, resource in every.items()
            if resource["Type"] == "AWS::CloudWatch::Alarm" and "EvaluationCriteria" in resource["Properties"]
        }
        self.alarms = [resource["Properties"] for resource in chosen.values()]
        [(rule, resource)] = [
            (name, each)
            for name, each in every.items()
            if each["Type"] == "AWS::Events::Rule" and "EventPattern" in each["Properties"]
        ]
        target = {"Arn": {"Fn::GetAtt": ["Signals", "Arn"]}, "Id": "Queue"}
        chosen[rule] = {**resource, "Properties": {**resource["Properties"], "Targets": [target]}}
        chosen["Signals"] = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "signals"}}
        cloudformation = emulator.client("cloudformation")
        cloudformation.create_stack(StackName="Hardware", TemplateBody=json.dumps({"Resources": chosen}))
        cloudformation.get_waiter("stack_create_complete").wait(
            StackName="Hardware", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )
        self._sqs = emulator.client("sqs")
        self._queue = self._sqs.get_queue_url(QueueName="signals")["QueueUrl"]

    def evaluated(self, at: float) -> list[dict[str, Any]]:
        """Evaluate the alarms, and return the events that the rule let through."""
        self._emulator.evaluate_alarms(at)
        found = []
        while messages := self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for message in messages:
                found.append(json.loads(message["Body"]))
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
        return found


class TimedSimulation(HealthSimulation):
    """The simulation, with events of alarms at given times."""

    def __init__(self, arrivals: dict[HardwareFault, float], **parameters: Any) -> None:
        self._arrivals = arrivals
        super().__init__(one_release(16, racks=4), EVENTS, **parameters)

    def _delivered(self, faults: tuple[HardwareFault, ...]) -> Iterator[tuple[float, HardwareFault]]:
        for _, fault in super()._delivered(faults):
            yield self._arrivals[fault], fault


@pytest.fixture
def hour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HourOfHandlers]:
    with (
        SimulatedCluster() as cluster,
        Emulator(tmp_path, region=REGION, alarm_speed=0, metrics_url=cluster.address) as emulator,
    ):
        begin_anew(monkeypatch, emulator.environment() | QUIET)
        alarms = HardwareAlarms(emulator)
        with prepared(cluster, monkeypatch, tmp_path, platform=PLATFORM) as world:
            world.settings(repairedBy={POOL: "gpuHealth"}, maxUnhealthyPercent=5)
            yield HourOfHandlers(cluster, world, alarms)


def test_an_hour_through_the_handlers_is_that_of_the_simulation(hour: HourOfHandlers) -> None:
    handled = hour.run(MINUTES)
    delays = fleet_faults().delays
    assert set(hour.arrivals) == set(EVENTS.hardware)
    assert all(0 <= at - fault.at <= delays["hardware_signal_seconds"] for fault, at in hour.arrivals.items())
    simulated = TimedSimulation(
        hour.arrivals,
        settings=SETTINGS,
        rules=FaultRules.parsed(gpu_faults_file().read_text()),
        figures=fleet_faults(),
        seed=1,
    ).run(MINUTES)
    assert [(each.found_at, each.serving_at) for each in handled.faults] == [
        (each.found_at, each.serving_at) for each in simulated.faults
    ]
    assert all(each.serving_at is not None for each in simulated.faults)
    assert (handled.drains, handled.false_drains) == (simulated.drains, simulated.false_drains) == (2, [])
