"""Tasks of ECS really run: the control plane, the agent and the processes, through boto3."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.ecs_reasons import WatchedServices, reasons_of
from inference_blueprints.operate.verify.ecs_checks import steady_services
from inference_local.emulator.refusals import (
    EXECUTE_COMMAND_OFF,
    NO_CAPACITY,
    NOT_INTERACTIVE,
    VCPU_LIMIT,
)
from tests.local.ecs.running_cluster import CLUSTER, HOST_TYPE, POOL, RunningCluster, eventually, identifier

WAITS = "import signal, sys, time; print('up', flush=True); time.sleep(3600)"
DRAINS = """
import signal, sys, time
def drain(*_):
    print('draining', flush=True); time.sleep(1); print('drained', flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, drain)
print('up', flush=True)
time.sleep(3600)
"""
IGNORES = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
time.sleep(3600)
"""
FAILS = "import sys; sys.exit(3)"


def test_a_command_runs_with_what_ecs_gives_it(cluster: RunningCluster) -> None:
    secret = cluster.emulator.client("secretsmanager").create_secret(
        Name="keys", SecretString=json.dumps({"ca": "a secret"})
    )["ARN"]
    program = (
        "import json, os, time, urllib.request as r; a = os.environ['ECS_CONTAINER_METADATA_URI_V4'];"
        "d = json.load(r.urlopen(a)); t = json.load(r.urlopen(a + '/task'));"
        "print(json.dumps([os.environ['KEY'], os.environ['PLAIN'], os.environ['NVIDIA_VISIBLE_DEVICES'],"
        "d['Networks'][0]['IPv4Addresses'][0], t['TaskARN']]), flush=True); time.sleep(3600)"
    )
    definition = cluster.register(
        "given",
        program,
        environment=[{"name": "PLAIN", "value": "text"}],
        secrets=[{"name": "KEY", "valueFrom": f"{secret}:ca::"}],
        resourceRequirements=[{"type": "GPU", "value": "2"}],
    )
    cluster.create("given", definition)
    [task] = cluster.running("given", 1)
    key, plain, gpus, address, arn = json.loads(eventually(lambda: cluster.log(task), "output"))
    assert (key, plain, arn) == ("a secret", "text", task["taskArn"])
    assert gpus.split(",") == task["containers"][0]["gpuIds"]
    assert address.startswith("127.64.")
    assert cluster.steady("given")["runningCount"] == 1
    cluster.delete("given")


def test_a_killed_task_is_replaced(cluster: RunningCluster) -> None:
    cluster.create("killed", cluster.register("killed", WAITS))
    [task] = cluster.running("killed", 1)
    os.kill(cluster.processes(task)["main"], signal.SIGKILL)
    stopped = eventually(lambda: cluster.tasks("killed", "STOPPED"), "stopped task")[0]
    assert stopped["stopCode"] == "EssentialContainerExited"
    assert stopped["containers"][0]["exitCode"] == 137
    [replacement] = cluster.running("killed", 1)
    assert replacement["taskArn"] != task["taskArn"]
    cluster.delete("killed")


def test_scale_in_drains_with_sigterm(cluster: RunningCluster) -> None:
    cluster.create("drained", cluster.register("drained", DRAINS, stopTimeout=20), 2)
    for each in cluster.running("drained", 2):
        eventually(lambda each=each: "up" in cluster.log(each), "start of the program")  # type: ignore[misc]
    cluster.ecs.update_service(cluster=CLUSTER, service="drained", desiredCount=1)
    [stopped] = eventually(
        lambda: [task for task in cluster.tasks("drained", "STOPPED") if task["lastStatus"] == "STOPPED"],
        "stopped task",
    )
    assert cluster.log(stopped).splitlines() == ["up", "draining", "drained"]
    assert (stopped["stopCode"], stopped["containers"][0]["exitCode"]) == ("ServiceSchedulerInitiated", 0)
    cluster.delete("drained")


def test_sigkill_comes_after_the_stop_timeout(cluster: RunningCluster) -> None:
    cluster.create("stubborn", cluster.register("stubborn", IGNORES, stopTimeout=2))
    [task] = cluster.running("stubborn", 1)
    eventually(lambda: "up" in cluster.log(task), "start of the program")
    process = psutil.Process(cluster.processes(task)["main"])
    cluster.ecs.stop_task(cluster=CLUSTER, task=task["taskArn"], reason="test")
    stopped = eventually(
        lambda: [each for each in cluster.tasks("stubborn", "STOPPED") if each["lastStatus"] == "STOPPED"],
        "stopped task",
    )[0]
    assert not process.is_running()
    assert (stopped["stopCode"], stopped["containers"][0]["exitCode"]) == ("UserInitiated", 137)
    assert stopped["stoppedAt"].timestamp() - stopped["stoppingAt"].timestamp() >= 2
    cluster.delete("stubborn")


@pytest.mark.parametrize("fault", ["exits", "image", "unhealthy"])
def test_a_deployment_that_does_not_start_is_rolled_back(cluster: RunningCluster, fault: str) -> None:
    name = f"rolled-{fault}"
    good = cluster.register(name, WAITS)
    breaker = {"enable": True, "rollback": True, "thresholdConfiguration": {"type": "COUNT", "value": 3}}
    cluster.create(name, good, deploymentConfiguration={"deploymentCircuitBreaker": breaker})
    cluster.steady(name)
    check = {"command": ["CMD-SHELL", "exit 1"], "interval": 5, "retries": 1}
    bad = {
        # Its first check would come after its end.
        "exits": lambda: cluster.register(name, FAILS, healthCheck={**check, "interval": 300}),
        "image": lambda: cluster.register(name, WAITS, image="registry.example/absent"),
        "unhealthy": lambda: cluster.register(name, WAITS, healthCheck=check),
    }[fault]()
    cluster.ecs.update_service(cluster=CLUSTER, service=name, taskDefinition=bad)
    eventually(
        lambda: any("rolling back" in event["message"] for event in cluster.service(name)["events"]),
        "rollback",
    )
    assert cluster.steady(name)["taskDefinition"] == good
    reasons = {
        task["stoppedReason"] for task in cluster.tasks(name, "STOPPED") if task["taskDefinitionArn"] == bad
    }
    expected = {"exits": "Essential", "image": "CannotPull", "unhealthy": "failed container health checks"}
    assert any(expected[fault] in reason for reason in reasons)
    cluster.delete(name)


def test_tasks_of_a_lost_host_run_on_another(cluster: RunningCluster) -> None:
    cluster.create("hosted", cluster.register("hosted", WAITS), 2)
    before = cluster.running("hosted", 2)
    processes = [psutil.Process(cluster.processes(task)["main"]) for task in before]
    host = identifier(before[0]["containerInstanceArn"])
    cluster.emulator.task_fault("KillHost", cluster=CLUSTER, instance=host)
    eventually(lambda: not any(each.is_running() for each in processes), "end of the host's processes")
    after = cluster.running("hosted", 2)
    assert host not in {identifier(task["containerInstanceArn"]) for task in after}
    reasons = {task["stoppedReason"] for task in cluster.tasks("hosted", "STOPPED")}
    assert all(reason.startswith("Host EC2 (instance i-") for reason in reasons)
    cluster.delete("hosted")


def test_a_task_that_no_host_takes_says_so(cluster: RunningCluster) -> None:
    definition = cluster.register("large", WAITS, resourceRequirements=[{"type": "GPU", "value": "8"}])
    cluster.create("large", definition)
    message = eventually(lambda: cluster.service("large")["events"], "event")[0]["message"]
    assert "was unable to place a task" in message
    assert "8 GPUs; an empty g6e.12xlarge of pool-gpu has" in message
    cluster.delete("large")


def test_a_container_starts_after_what_it_depends_on(cluster: RunningCluster) -> None:
    shared = {"sourceVolume": "cache", "containerPath": "/cache"}
    answer = cluster.ecs.register_task_definition(
        family="ordered",
        networkMode="host",
        volumes=[{"name": "cache", "host": {}}],
        containerDefinitions=[
            {
                "name": "main",
                "image": "registry.example/engine",
                "memory": 64,
                "mountPoints": [shared],
                "dependsOn": [{"containerName": "fill", "condition": "SUCCESS"}],
                "command": ["/bin/sh", "-c", "cat /cache/weights; exec sleep 3600"],
            },
            {
                "name": "fill",
                "image": "registry.example/engine",
                "memory": 64,
                "essential": False,
                "mountPoints": [shared],
                "command": ["/bin/sh", "-c", "sleep 1; echo filled > /cache/weights"],
            },
        ],
    )
    cluster.create("ordered", answer["taskDefinition"]["taskDefinitionArn"])
    [task] = cluster.running("ordered", 1)
    eventually(lambda: cluster.log(task) == "filled\n", "what the other container wrote")
    states = {each["name"]: (each["lastStatus"], each.get("exitCode")) for each in task["containers"]}
    assert states == {"main": ("RUNNING", None), "fill": ("STOPPED", 0)}
    cluster.delete("ordered")


def test_a_worker_protects_itself_from_scale_in(cluster: RunningCluster) -> None:
    program = (
        "import json, os, time, urllib.request as r;"
        "a = os.environ['ECS_AGENT_URI'] + '/task-protection/v1/state';"
        "b = json.dumps({'ProtectionEnabled': True, 'ExpiresInMinutes': 60}).encode();"
        "time.sleep(1.5);"
        "print(r.urlopen(r.Request(a, data=b, method='PUT')).read().decode(), flush=True); time.sleep(3600)"
    )
    cluster.create("protected", cluster.register("protected", program))
    [task] = cluster.running("protected", 1)
    log = eventually(lambda: cluster.log(task), "answer of the agent")
    assert json.loads(log)["protection"]["ProtectionEnabled"] is True
    cluster.ecs.update_service(cluster=CLUSTER, service="protected", desiredCount=0)
    answer = cluster.ecs.get_task_protection(cluster=CLUSTER, tasks=[task["taskArn"]])["protectedTasks"]
    assert answer[0]["protectionEnabled"] is True
    assert cluster.service("protected")["desiredCount"] == 0
    assert cluster.running("protected", 1)[0]["taskArn"] == task["taskArn"]
    cluster.ecs.update_task_protection(cluster=CLUSTER, tasks=[task["taskArn"]], protectionEnabled=False)
    eventually(lambda: not cluster.tasks("protected"), "scale-in")
    cluster.delete("protected")


def test_cloudformation_waits_for_a_steady_service(cluster: RunningCluster) -> None:
    # "CREATE_COMPLETE" of AWS::ECS::Service means that the service is steady; a failed deployment fails it.
    def stack(name: str, program: str) -> str:
        cloudformation = cluster.emulator.client("cloudformation")
        breaker = {
            "Enable": True,
            "Rollback": True,
            "ThresholdConfiguration": {"Type": "COUNT", "Value": "2"},
        }
        resources = {
            "Task": {
                "Type": "AWS::ECS::TaskDefinition",
                "Properties": {
                    "Family": name,
                    "NetworkMode": "host",
                    "ContainerDefinitions": [
                        {
                            "Name": "main",
                            "Image": "registry.example/engine:1",
                            "Memory": 64,
                            "Command": [sys.executable, "-u", "-c", program],
                            "HealthCheck": {"Command": ["CMD", "true"], "Interval": 300},
                            "LogConfiguration": {"LogDriver": "awslogs", "Options": {"awslogs-group": "/x"}},
                        }
                    ],
                },
            },
            "Service": {
                "Type": "AWS::ECS::Service",
                "Properties": {
                    "Cluster": CLUSTER,
                    "ServiceName": name,
                    "TaskDefinition": {"Ref": "Task"},
                    "DesiredCount": 1,
                    "CapacityProviderStrategy": [{"CapacityProvider": POOL, "Weight": 1}],
                    "DeploymentConfiguration": {"DeploymentCircuitBreaker": breaker},
                },
            },
        }
        cloudformation.create_stack(
            StackName=name, TemplateBody=json.dumps({"Resources": resources}), OnFailure="DO_NOTHING"
        )

        def ended() -> str | None:
            status = str(cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
            return None if status.endswith("_IN_PROGRESS") else status

        return str(eventually(ended, "end of the stack"))

    assert stack("formed", WAITS) == "CREATE_COMPLETE"
    assert cluster.service("formed")["deployments"][0]["rolloutState"] == "COMPLETED"
    described = cluster.ecs.describe_task_definition(taskDefinition="formed")["taskDefinition"]
    assert described["containerDefinitions"][0]["logConfiguration"]["options"] == {"awslogs-group": "/x"}
    assert stack("unformed", FAILS) != "CREATE_COMPLETE"
    cluster.delete("formed")
    cluster.delete("unformed")


def test_ref_of_a_secret_is_its_arn(cluster: RunningCluster) -> None:
    # The patch `secret_references` can go once ministack returns the ARN itself.
    cloudformation = cluster.emulator.client("cloudformation")
    resources = {"Keys": {"Type": "AWS::SecretsManager::Secret", "Properties": {"SecretString": "text"}}}
    outputs = {"Ref": {"Value": {"Ref": "Keys"}}}
    template = json.dumps({"Resources": resources, "Outputs": outputs})
    cloudformation.create_stack(StackName="keys", TemplateBody=template)

    def outputs_of() -> list[dict[str, str]]:
        return list(cloudformation.describe_stacks(StackName="keys")["Stacks"][0].get("Outputs", []))

    [output] = eventually(outputs_of, "output")
    secrets = cluster.emulator.client("secretsmanager")
    assert secrets.describe_secret(SecretId=output["OutputValue"])["ARN"] == output["OutputValue"]
    cloudformation.delete_stack(StackName="keys")
    eventually(
        lambda: output["OutputValue"] not in [each["ARN"] for each in secrets.list_secrets()["SecretList"]],
        "deletion",
    )


def test_wrong_requests_are_refused_as_by_ecs(cluster: RunningCluster) -> None:
    with pytest.raises(ClientError, match="ServiceNotFoundException"):
        cluster.ecs.update_service(cluster=CLUSTER, service="absent", desiredCount=1)
    with pytest.raises(ClientError, match="ClusterNotFoundException"):
        cluster.ecs.list_tasks(cluster="absent")
    with pytest.raises(ClientError, match="Unable to describe task definition"):
        cluster.create("absent", "absent:1")
    with pytest.raises(ClientError, match="not associated"):
        cluster.ecs.create_service(
            cluster=CLUSTER,
            serviceName="absent",
            taskDefinition=cluster.register("absent", WAITS),
            capacityProviderStrategy=[{"capacityProvider": f"{POOL}-other"}],
        )


def test_why_a_service_has_no_host_is_said(cluster: RunningCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It turns red if `deploy` or `verify` does not say EC2's reason, or says it when there are hosts."""
    for name, value in cluster.emulator.environment().items():
        monkeypatch.setenv(name, value)
    account = Account("us-west-2")
    # A pool of its own, because other tests leave hosts in the other one.
    pool = cluster.add_pool("refused", hosts=2)
    fault = {"cluster": CLUSTER, "pool": pool}
    lines: list[str] = []
    watch = WatchedServices(account, CLUSTER, "try.yaml", lines.append)
    platform = cast("Any", SimpleNamespace(account=account, name=CLUSTER, aws=str, deploy_command=""))
    cluster.emulator.task_fault("BlockLaunches", **fault, blocked=True)
    strategy = [{"capacityProvider": pool, "weight": 1}]
    cluster.create("refused", cluster.register("refused", WAITS), 1, capacityProviderStrategy=strategy)
    for refusal in (NO_CAPACITY, VCPU_LIMIT):
        words = str(refusal.error(type=HOST_TYPE, zone="us-west-2a", limit="0"))
        cluster.emulator.task_fault("BlockLaunches", **fault, blocked=True, refusal=words)
        eventually(partial(_looked, watch, lines, words), refusal.code)
        [said] = [each.message for each in steady_services(platform) if "refused" in each.message]
        assert words in said
    assert sum(line.startswith("what to do: ") for line in lines) == 2
    cluster.emulator.task_fault("BlockLaunches", **fault, blocked=False)
    cluster.running("refused", 1)
    assert reasons_of(account, CLUSTER, cluster.steady("refused")) == []
    cluster.delete("refused")


def _looked(watch: WatchedServices, lines: list[str], words: str) -> bool:
    watch.look()
    return any(words in line for line in lines)


def test_commands_run_only_in_tasks_that_were_started_for_them(cluster: RunningCluster) -> None:
    """It turns red if the stand-in opens a session that ECS Exec refuses."""
    tasks = {}
    for name in ("opened", "closed"):
        definition = cluster.register(name, WAITS)
        cluster.create(name, definition, enableExecuteCommand=name == "opened")
        [tasks[name]] = cluster.running(name, 1)
    asked = {"cluster": CLUSTER, "command": "/bin/sh", "container": "main"}
    opened, closed = tasks["opened"]["taskArn"], tasks["closed"]["taskArn"]
    session = cluster.ecs.execute_command(**asked, task=opened, interactive=True)
    assert session["session"]["sessionId"].startswith("ecs-execute-command-")
    assert tasks["opened"]["enableExecuteCommand"] is True
    for task, interactive, row in ((closed, True, EXECUTE_COMMAND_OFF), (opened, False, NOT_INTERACTIVE)):
        with pytest.raises(ClientError) as refused:
            cluster.ecs.execute_command(**asked, task=task, interactive=interactive)
        assert refused.value.response["Error"] == {"Code": row.code, "Message": row.message}
    for name in tasks:
        cluster.delete(name)
