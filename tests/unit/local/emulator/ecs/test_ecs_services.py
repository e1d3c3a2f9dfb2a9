"""Services, deployments, hosts and faults of the control plane, each against its AWS document."""

from __future__ import annotations

import pytest

from inference_local.emulator.ecs.control.cluster_state import Health, StopCode, TaskStatus
from tests.unit.local.emulator.ecs.control_parts import (
    CHECK,
    CLUSTER,
    POOL,
    Played,
    PlayedTargets,
    definition,
)

BREAKER = {"enable": True, "rollback": True, "thresholdConfiguration": {"type": "COUNT", "value": 3}}


def started(played: Played, desired: int = 2, **request: object) -> Played:
    played.service(desired, definition(resourceRequirements=[{"type": "GPU", "value": "2"}]), **request)
    played.wait(31)
    played.run_all()
    return played


def test_a_service_gets_hosts_and_reaches_a_steady_state() -> None:
    # Deployment.rolloutState: COMPLETED once the service is steady. cluster-auto-scaling.html: hosts for
    # what waits.
    played = started(Played(), desired=3)
    service = played.state.services["model"]
    assert [task.status for task in played.tasks()] == [TaskStatus.RUNNING] * 3
    assert len(played.state.instances) == 2, "four GPUs per host, two per task"
    assert service.primary.rollout_state == "COMPLETED"
    assert played.messages()[0] == "(service model) has reached a steady state."


def test_gpus_are_pinned_and_no_two_tasks_share_one() -> None:
    # ecs-gpu.html: "the agent pins the desired number of physical GPUs to the container".
    played = started(Played(), desired=2)
    pinned = [gpu for task in played.tasks() for gpu in task.gpu_ids]
    assert len(pinned) == len(set(pinned)) == 4


def test_a_task_that_ends_is_replaced() -> None:
    played = started(Played())
    first = played.tasks()[0]
    played.end(first, 137)
    played.run_all()
    assert first.stop_code is StopCode.ESSENTIAL_EXITED
    assert len(played.running()) == 2
    assert first.identifier not in {task.identifier for task in played.tasks()}


def test_scale_in_leaves_protected_tasks() -> None:
    # API UpdateTaskProtection: protects "from termination during scale-in events".
    played = started(Played(), desired=3)
    kept = played.tasks()[0]
    kept.protected_until = played.now + 600
    played.change(desiredCount=1)
    played.run_all()
    assert played.running() == [kept]
    played.change(desiredCount=0)
    played.run_all()
    assert played.running() == [kept]
    played.wait(601)
    played.run_all()
    assert played.running() == []


def test_a_deployment_keeps_to_its_percents() -> None:
    # API DeploymentConfiguration: 50 % of 3 is 2 (up), 134 % of 3 is 4 (down).
    played = started(
        Played(), desired=3, deploymentConfiguration={"minimumHealthyPercent": 50, "maximumPercent": 134}
    )
    played.deploy(definition("engine:2"))
    minimum, maximum = 3, 3
    for _ in range(60):
        played.wait(1)
        minimum, maximum = min(minimum, len(played.running())), max(maximum, len(played.tasks()))
        for task in played.tasks():
            if task.status is TaskStatus.STOPPING:
                played.end(task, 0)
            elif task.address and task.is_live and played.now - task.created_at > 5:
                played.run(task)
    assert (minimum, maximum) == (2, 4)
    assert {task.definition["taskDefinitionArn"] for task in played.running()} == {"engine:2"}
    assert played.state.services["model"].primary.rollout_state == "COMPLETED"


def test_a_deployment_that_cannot_move_says_so() -> None:
    # service-event-messages-list.html: percents that allow neither a stop nor a start.
    played = started(
        Played(), desired=1, deploymentConfiguration={"minimumHealthyPercent": 100, "maximumPercent": 100}
    )
    played.deploy(definition("engine:2"))
    played.wait(5)
    assert "unable to stop or start tasks during a deployment" in played.messages()[0]


def test_the_circuit_breaker_rolls_back_to_the_completed_deployment() -> None:
    # deployment-circuit-breaker.html: "the most recent deployment that is in a COMPLETED state".
    played = started(
        Played(),
        desired=1,
        deploymentConfiguration={
            "deploymentCircuitBreaker": BREAKER, "minimumHealthyPercent": 100, "maximumPercent": 200
        },
    )  # fmt: skip
    good = played.tasks()[0]
    played.deploy(definition("engine:2"))
    failed = 0
    for _ in range(40):
        played.wait(1)
        for task in played.tasks():
            if task is not good and task.address and task.is_live:
                played.end(task, 1, StopCode.FAILED_TO_START)
                failed += 1
    service = played.state.services["model"]
    assert failed == 3
    assert service.primary.task_definition == service.request["taskDefinition"] == "engine:1"
    assert service.primary.rollout_state == "COMPLETED"
    assert played.running() == [good]
    names = [detail.get("eventName") for kind, detail in played.told if kind == "ECS Deployment State Change"]
    assert "SERVICE_DEPLOYMENT_FAILED" in names


def test_a_task_that_stays_unhealthy_counts_after_the_grace_period() -> None:
    # API CreateService, healthCheckGracePeriodSeconds; circuit breaker, stage 2: health checks.
    played = Played()
    played.service(
        1,
        definition(healthCheck=CHECK),
        healthCheckGracePeriodSeconds=100,
        deploymentConfiguration={
            "deploymentCircuitBreaker": BREAKER,
            "maximumPercent": 100,
            "minimumHealthyPercent": 0,
        },
    )
    played.wait(31)
    [task] = played.tasks()
    played.run(task, Health.UNHEALTHY)
    played.wait(99)
    assert task.is_live, "the grace period is not over"
    played.wait(2)
    assert (task.stop_code, task.status) == (StopCode.SCHEDULER, TaskStatus.STOPPING)
    assert task.stopped_reason == "Task failed container health checks (service model)"
    played.end(task, 0)
    played.wait(1)
    assert played.state.services["model"].primary.failed_tasks == 1


def test_an_unhealthy_task_stays_until_its_replacement_has_started() -> None:
    # API DeploymentConfiguration: with room for it, the replacement starts first.
    played = Played()
    played.service(1, definition(healthCheck=CHECK))
    played.wait(31)
    played.run_all(Health.HEALTHY)
    [task] = played.tasks()
    played.run(task, Health.UNHEALTHY)
    played.control.tick(played.now)
    assert task.is_live
    assert len(played.tasks()) == 2


def test_tasks_of_a_lost_host_run_elsewhere() -> None:
    # API DeregisterContainerInstance: a terminated instance with a connected agent is deregistered.
    played = started(Played(), desired=3)
    lost = played.tasks()[0]
    host = lost.instance
    assert host is not None
    played.control.kill_host(CLUSTER, host, played.now)
    assert lost.stop_code is StopCode.TERMINATION
    assert host not in played.state.instances
    played.wait(31)
    played.run_all()
    assert len(played.running()) == 3
    assert host not in {task.instance for task in played.running()}


def test_nothing_is_known_of_a_lost_host_whose_agent_was_disconnected() -> None:
    # API DeregisterContainerInstance: instances with disconnected agents are not deregistered when
    # terminated.
    played = started(Played(), desired=1)
    [task] = played.tasks()
    played.control.disconnect_agent(CLUSTER, task.instance or "")
    played.control.kill_host(CLUSTER, task.instance or "", played.now)
    played.wait(60)
    assert played.running() == [task]


def test_a_disconnected_agent_gets_no_task_and_tells_later() -> None:
    # API ContainerInstance, agentConnected.
    played = started(Played(), desired=1)
    [task] = played.tasks()
    host = task.instance or ""
    played.control.disconnect_agent(CLUSTER, host)
    played.end(task, 1)
    played.wait(5)
    assert played.running() == [task], "the control plane does not know yet"
    played.control.reconnect_agent(CLUSTER, host)
    assert task.status is TaskStatus.STOPPED


def test_a_host_that_is_rebooted_loses_its_tasks_and_keeps_its_registration() -> None:
    """Red if a reboot does nothing here, or its tasks end before the agent can tell of it."""
    played = started(Played(), desired=1)
    [task] = played.tasks()
    host = played.state.instances[task.instance or ""]
    played.control.reboot_host(host.ec2_id, played.now)
    played.control.reboot_host(host.ec2_id, played.now)
    played.wait(5)
    assert (host.agent_connected, task.status) == (False, TaskStatus.RUNNING)
    played.wait(200)
    assert played.state.instances[host.identifier].agent_connected
    assert task.status is TaskStatus.STOPPED
    played.control.reboot_host("i-unknown", played.now)


def test_a_host_that_drains_gives_its_tasks_away_and_keeps_the_minimum() -> None:
    # API UpdateContainerInstancesState: minimumHealthyPercent 100: replacements are healthy first.
    played = started(Played(), desired=2)
    [host] = played.state.instances.values()
    played.control.cluster(CLUSTER).hosts.terminate(host.identifier, played.now)
    for _ in range(40):
        played.wait(1)
        assert len(played.running()) >= 2
        for task in played.tasks():
            if task.status is TaskStatus.STOPPING:
                played.end(task, 0)
            elif task.address and task.is_live:
                played.run(task)
    assert host.identifier not in played.state.instances
    assert len(played.running()) == 2


def test_a_task_that_no_host_takes_says_so_and_launches_nothing() -> None:
    played = Played()
    played.service(1, definition(resourceRequirements=[{"type": "GPU", "value": "8"}]))
    played.wait(60)
    assert played.state.instances == {}
    assert "and 8 GPUs; an empty g6e.12xlarge of gpu has 16384, 131072 MiB and 4." in played.messages()[0]
    assert ("ECS Service Action", "SERVICE_TASK_PLACEMENT_FAILURE") in [
        (kind, detail.get("eventName")) for kind, detail in played.told
    ]


@pytest.mark.parametrize("blocked", [True, False])
def test_a_pool_that_is_full_or_without_capacity_says_so(*, blocked: bool) -> None:
    # service-event-messages-list.html: the closest instance and what it lacks.
    played = Played(hosts=1)
    played.control.block_launches(CLUSTER, POOL, blocked=blocked)
    played.service(3, definition(resourceRequirements=[{"type": "GPU", "value": "2"}]))
    played.wait(60)
    expected = "No Container Instances were found" if blocked else "has insufficient GPU resource available"
    assert expected in played.messages()[0]


def test_empty_hosts_leave_after_a_while_and_the_minimum_stays() -> None:
    played = started(Played(minimum=1), desired=4)
    assert len(played.state.instances) == 2
    played.change(desiredCount=0)
    played.run_all()
    played.wait(800)
    assert len(played.state.instances) == 2
    played.wait(200)
    assert len(played.state.instances) == 1


def test_starts_that_fail_again_and_again_are_throttled() -> None:
    # service-throttle-logic.html.
    played = Played()
    played.service(1)
    for _ in range(300):
        played.wait(1)
        for task in played.tasks():
            if task.address:
                played.end(task, 1, StopCode.FAILED_TO_START)
    assert 5 <= played.state.services["model"].primary.failed_tasks <= 9
    assert "is unable to consistently start tasks successfully." in played.messages()[0]


def test_a_deleted_service_drains_and_is_gone() -> None:
    played = started(Played())
    service = played.control.delete_service(CLUSTER, "model")
    played.wait(1)
    assert service.status == "DRAINING"
    played.run_all()
    assert (service.status, played.state.services) == ("INACTIVE", {})


def test_a_daemon_service_runs_once_on_each_host() -> None:
    played = started(Played(), desired=4)
    daemon = definition("exporter:1", cpu=0, memory=128)
    played.control.around.definitions["exporter:1"] = daemon
    played.control.create_service(
        CLUSTER, "exporter", {"taskDefinition": "exporter:1", "schedulingStrategy": "DAEMON"}, played.now
    )
    played.wait(3)
    hosts = [task.instance for task in played.state.tasks_of("exporter")]
    assert sorted(hosts, key=str) == sorted(played.state.instances)


def test_a_host_that_drains_does_not_count_as_capacity() -> None:
    # API UpdateContainerInstancesState: no new tasks there, so managed scaling launches another.
    played = started(Played(), desired=1)
    [drained] = played.state.instances.values()
    played.change(desiredCount=0)
    played.run_all()
    played.control.cluster(CLUSTER).hosts.set_status(drained, "DRAINING")
    played.change(desiredCount=1)
    played.wait(40)
    played.run_all()
    [task] = played.running()
    assert task.instance != drained.identifier


def test_a_target_is_unused_before_its_task_gets_sigterm() -> None:
    # load-balancer-connection-draining.html: deregister, wait, then stop.
    played = Played()
    targets = PlayedTargets()
    played.control.around.targets = targets
    group = {"targetGroupArn": "group", "containerName": "main", "containerPort": 8000}
    played.service(1, loadBalancers=[group])
    played.wait(31)
    [task] = played.tasks()
    played.run(task)
    played.wait(1)
    assert targets.registered == [("group", task.address, 8000)]
    assert played.state.services["model"].primary.rollout_state == "IN_PROGRESS", (
        "its target is not healthy yet"
    )
    targets.healthy = True
    played.wait(1)
    assert played.state.services["model"].primary.rollout_state == "COMPLETED"
    played.change(desiredCount=0)
    played.wait(30)
    assert (task.status, played.runner.stopped) == (TaskStatus.DEACTIVATING, [])
    targets.unused = True
    played.wait(1)
    assert (task.status, played.runner.stopped) == (TaskStatus.STOPPING, [task.identifier])
