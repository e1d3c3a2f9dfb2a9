"""Faults of ECS on the rendered tasks of a platform, while clients stream. Every token is counted."""

from __future__ import annotations

import psutil
import pytest

from tests.local.conformance.cases import disturbed_streams, streams_while
from tests.local.conformance.platforms import WORKERS, EcsRendering, eventually
from tests.local.counted_streams import CLIENTS as OPEN_STREAMS

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(2400)]

_MEMBERS = 3


def _identifier(arn: str) -> str:
    return arn.rpartition("/")[2]


def test_tasks_run_what_their_definitions_say(ecs: EcsRendering) -> None:
    [task, *_] = ecs.running(ecs.service)
    [process] = ecs.fault("Processes", task=_identifier(task["taskArn"]))["processes"].values()
    definition = ecs.ecs.describe_task_definition(taskDefinition=task["taskDefinitionArn"])["taskDefinition"]
    [container] = definition["containerDefinitions"]
    environment = psutil.Process(process).environ()
    written = {each["name"]: each["value"] for each in container["environment"]}
    # `task_start` fills in the port, takes its own document away and adds the address.
    kept = {
        name: value
        for name, value in written.items()
        if name not in ("TASK_START", "TASK_PROGRAM") and "$(" not in value and "/tmp" not in value  # noqa: S108
    }
    assert kept.items() <= environment.items()
    assert environment["DYN_SYSTEM_PORT"] == "20000"
    assert {each["name"] for each in container["secrets"]} <= environment.keys()
    assert "BEGIN CERTIFICATE" in environment["ETCD_AUTH_CA"]
    assert environment["DYN_TCP_RPC_HOST"].startswith("10.64.")
    assert "TASK_PROGRAM" not in environment
    assert task["healthStatus"] == "HEALTHY"
    # The task found its own ARN and tagged itself.
    address = f"{environment['DYN_TCP_RPC_HOST']}:20000"
    described = ecs.ecs.describe_tasks(cluster=ecs.cluster, tasks=[task["taskArn"]], include=["TAGS"])
    tags = described["tasks"][0]["tags"]
    assert {"key": "inference-blueprints/metrics", "value": address} in tags


def test_a_task_runs_on_while_its_agent_is_away(ecs: EcsRendering) -> None:
    before = {each["taskArn"] for each in ecs.running(ecs.service)}
    [task, *_] = ecs.running(ecs.service)
    host = _identifier(task["containerInstanceArn"])

    def disturb() -> None:
        ecs.fault("DisconnectAgent", cluster=ecs.cluster, instance=host)
        [found] = ecs.ecs.describe_container_instances(cluster=ecs.cluster, containerInstances=[host])[
            "containerInstances"
        ]
        assert found["agentConnected"] is False
        ecs.fault("ReconnectAgent", cluster=ecs.cluster, instance=host)

    assert streams_while(ecs, disturb) > 0
    assert {each["taskArn"] for each in ecs.running(ecs.service)} == before


def test_an_image_that_does_not_start_is_rolled_back(ecs: EcsRendering) -> None:
    good = ecs.described(ecs.service)["taskDefinition"]
    definition = ecs.ecs.describe_task_definition(taskDefinition=good)["taskDefinition"]
    [container] = definition["containerDefinitions"]
    kept = ("family", "networkMode", "requiresCompatibilities", "executionRoleArn", "taskRoleArn")
    bad = ecs.ecs.register_task_definition(
        **{name: definition[name] for name in kept if name in definition},
        containerDefinitions=[{**container, "image": "registry.example/absent:1"}],
    )["taskDefinition"]["taskDefinitionArn"]

    def disturb() -> None:
        ecs.ecs.update_service(cluster=ecs.cluster, service=ecs.service, taskDefinition=bad)
        eventually(
            lambda: any("rolling back" in each["message"] for each in ecs.described(ecs.service)["events"]),
            "rollback",
        )
        eventually(lambda: ecs.is_steady(ecs.service), "steady service")

    assert streams_while(ecs, disturb) > 0
    assert ecs.described(ecs.service)["taskDefinition"] == good
    ecs.registered(WORKERS)


def test_the_discovery_store_starts_again_with_its_data(ecs: EcsRendering) -> None:
    arns = ecs.ecs.list_services(cluster=ecs.cluster)["serviceArns"]
    members = [_identifier(arn) for arn in arns if "Discovery" in arn]
    assert len(members) == _MEMBERS

    def disturb() -> None:
        for member in members:
            [task] = ecs.running(member)
            ecs.fault("KillTask", task=_identifier(task["taskArn"]))
        for member in members:
            eventually(lambda member=member: ecs.is_steady(member), f"steady {member}")  # type: ignore[misc]

    assert streams_while(ecs, disturb) > 0
    # A new worker finds its way to the frontends.
    ecs.kill_worker()
    ecs.replaced()
    ecs.registered(WORKERS)


def test_streams_outlive_a_terminated_host(ecs: EcsRendering) -> None:
    ecs.forgotten()  # with more than one worker that is gone, a stream may meet three of them in a row
    host, lost = _first_host(ecs)

    def disturb() -> None:
        ecs.fault("KillHost", cluster=ecs.cluster, instance=host)
        _replaced(ecs, lost)

    assert streams_while(ecs, disturb) > 0


def test_a_host_that_vanishes_costs_its_open_streams_and_no_others(ecs: EcsRendering) -> None:
    # Nothing closes its connections. Dynamo 1.6.1 reads such a stream until its client gives up, even after
    # the worker's lease has ended: these streams took more than 300 s. New requests go elsewhere.
    ecs.forgotten()
    host, lost = _first_host(ecs)

    def disturb() -> None:
        ecs.fault("CutHost", instance=host)
        ecs.fault("KillHost", cluster=ecs.cluster, instance=host)
        _replaced(ecs, lost)

    streams = disturbed_streams(ecs, disturb, timeout_seconds=60)
    # The client's time is over, or the frontend's ("Request deadline exceeded").
    assert all(each.startswith(("TimeoutError", "ValueError: 504")) for each in streams.errors), (
        streams.errors
    )
    assert len(streams.errors) <= OPEN_STREAMS
    assert streams.whole > 0
    assert streams_while(ecs, lambda: None) > 0


def _first_host(ecs: EcsRendering) -> tuple[str, set[str]]:
    """Return a host of a worker, and the tasks of the workers that run now."""
    running = ecs.running(ecs.service)
    return _identifier(running[0]["containerInstanceArn"]), {each["taskArn"] for each in running}


def _replaced(ecs: EcsRendering, before: set[str]) -> None:
    """Wait until one worker is new, and all are healthy."""
    eventually(
        lambda: (
            len({each["taskArn"] for each in ecs.running(ecs.service)} - before) == 1
            and ecs.is_steady(ecs.service)
        ),
        "replacement",
    )
