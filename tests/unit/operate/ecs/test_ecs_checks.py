"""Checks of a platform on ECS: each wrong fact has its line. Answers are held against botocore's models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session
from botocore.validate import ParamValidator

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.check_results import CheckResult, run_checks
from inference_blueprints.operate.doctor import access_checks, cluster_checks, doctor_checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.operate.verify import verification
from inference_blueprints.operate.verify.ecs_checks import ECS_CHECKS
from inference_blueprints.operate.verify.synthesised_platform import SynthesisedPlatform
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint, CapacityShift, Cluster, EcsCluster, GpuHealth
from inference_catalog.ecs_hosts import ecs_host_image
from inference_contracts.task_tags import LABEL_TAGS, METRICS_ADDRESS_TAG
from tests.unit.operate.conftest import NOW

PLATFORM = load_blueprint("elastic-g6e").blueprint.metadata.name
HOST = f"arn:aws:ecs:us-west-2:111122223333:container-instance/{PLATFORM}/h1"
GROUP = "arn:aws:elasticloadbalancing:us-west-2:111122223333:targetgroup/g/1"
RELEASE = [{"key": LABEL_TAGS["release"], "value": "qwen3-8b-main"}]


def healthy() -> dict[tuple[str, str], dict[str, Any]]:
    deployment = {"status": "PRIMARY", "rolloutState": "COMPLETED", "taskDefinition": "t"}
    worker = {
        "serviceName": "worker",
        "status": "ACTIVE",
        "desiredCount": 2,
        "runningCount": 2,
        "deployments": [deployment],
        "tags": RELEASE,
        "loadBalancers": [{"targetGroupArn": GROUP}],
        "events": [{"message": "(service worker) was unable to place a task"}],
    }
    host = {
        "containerInstanceArn": HOST,
        "ec2InstanceId": "i-1",
        "status": "ACTIVE",
        "agentConnected": True,
        "healthStatus": {"overallStatus": "OK", "details": []},
    }
    task = {
        "taskArn": "a/t1",
        "lastStatus": "RUNNING",
        "tags": [{"key": METRICS_ADDRESS_TAG, "value": "a:1"}],
    }
    target = {
        "ServiceNamespace": "ecs",
        "ResourceId": f"service/{PLATFORM}/worker",
        "ScalableDimension": "ecs:service:DesiredCount",
        "MinCapacity": 1,
        "MaxCapacity": 2,
        "RoleARN": "role",
        "CreationTime": NOW,
        "SuspendedState": {"DynamicScalingInSuspended": False},
    }
    return {
        ("ecs", "describe_clusters"): {"clusters": [{"clusterName": PLATFORM, "status": "ACTIVE"}]},
        ("ecs", "list_services"): {"serviceArns": ["s1"]},
        ("ecs", "describe_services"): {"services": [worker]},
        ("ecs", "list_container_instances"): {"containerInstanceArns": [HOST]},
        ("ecs", "describe_container_instances"): {"containerInstances": [host]},
        ("ecs", "list_tasks"): {"taskArns": ["a/t1"]},
        ("ecs", "describe_tasks"): {"tasks": [task]},
        ("elbv2", "describe_target_health"): {
            "TargetHealthDescriptions": [{"TargetHealth": {"State": "healthy"}}]
        },
        ("application-autoscaling", "describe_scalable_targets"): {"ScalableTargets": [target]},
    }


def operated() -> dict[tuple[str, str], dict[str, Any]]:
    """Answers about the stack of the controllers, beside the others."""
    table = {
        "StackName": f"{PLATFORM}-Operations",
        "LogicalResourceId": "Table",
        "ResourceType": "AWS::DynamoDB::GlobalTable",
        "PhysicalResourceId": "cases",
        "Timestamp": NOW,
        "ResourceStatus": "CREATE_COMPLETE",
    }
    return {
        **healthy(),
        ("cloudformation", "describe_stacks"): {"Stacks": []},
        ("cloudformation", "describe_stack_resources"): {"StackResources": [table]},
        ("dynamodb", "describe_table"): {"Table": {"TableStatus": "ACTIVE"}},
        ("cloudwatch", "get_metric_statistics"): {"Datapoints": [{"Sum": 1.0}, {"Sum": 1.0}]},
        ("ssm", "get_parameter"): {"Parameter": {"Value": "none"}},
    }


@dataclass
class Answers:
    """Clients that give one answer per operation, each valid by botocore's model."""

    answers: dict[tuple[str, str], dict[str, Any]] = field(default_factory=healthy)
    region: str = "us-west-2"

    def client(self, service: str) -> Any:
        answers = self.answers

        class Client:
            def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
                return lambda **_: answers[service, operation]

            def get_paginator(self, operation: str) -> Any:
                class Pages:
                    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
                        yield answers[service, operation]

                return Pages()

        return Client()


def platform(answers: Answers) -> Any:
    blueprint = load_blueprint("elastic-g6e").blueprint
    return VerifiedPlatform(
        answers,  # type: ignore[arg-type] # the two attributes that checks use
        blueprint,
        build_plan(blueprint),
        SynthesisedPlatform({}, {}),
        "a.yaml",
        NOW,
    )


def test_the_answers_here_are_those_of_the_apis() -> None:
    session = Session()
    for (service, operation), answer in operated().items():
        model = session.get_service_model(service)
        name = "".join(part.capitalize() for part in operation.split("_"))
        shape = model.operation_model(name).output_shape
        # An answer has more members than these, so only what is given is held against the model.
        report = ParamValidator().validate(answer, shape)
        assert "Unknown parameter" not in report.generate_report(), report.generate_report()
        assert "Invalid type" not in report.generate_report(), report.generate_report()


def test_a_healthy_platform_has_a_line_per_check() -> None:
    results = list(run_checks(ECS_CHECKS, platform(Answers())))
    assert [(each.check, each.severity) for each in results] == [(name, "ok") for name in ECS_CHECKS]


Break = Callable[[dict[tuple[str, str], dict[str, Any]]], object]


def service(answers: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = answers["ecs", "describe_services"]["services"][0]
    return found


def host(answers: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = answers["ecs", "describe_container_instances"]["containerInstances"][0]
    return found


WRONG: dict[str, tuple[str, Break]] = {
    "cluster": (
        "there is no active ECS cluster",
        lambda each: each["ecs", "describe_clusters"]["clusters"].clear(),
    ),
    "services": (
        "1 of 2 tasks run: (service worker) was unable to place a task",
        lambda each: service(each).update(runningCount=1),
    ),
    "services failed": (
        "its deployment failed",
        lambda each: service(each)["deployments"][0].update(rolloutState="FAILED"),
    ),
    "services rolling": (
        "its deployment is not completed",
        lambda each: service(each)["deployments"][0].update(rolloutState="IN_PROGRESS"),
    ),
    "services none": ("has no services", lambda each: each["ecs", "list_services"]["serviceArns"].clear()),
    "hosts": ("the ECS agent of i-1 is not connected", lambda each: host(each).update(agentConnected=False)),
    "hosts impaired": (
        "i-1 is impaired: ACCELERATED_COMPUTE",
        lambda each: host(each).update(
            healthStatus={
                "overallStatus": "IMPAIRED",
                "details": [{"type": "ACCELERATED_COMPUTE", "status": "IMPAIRED"}],
            }
        ),
    ),
    "hosts draining": ("i-1 is DRAINING", lambda each: host(each).update(status="DRAINING")),
    "targets": (
        "no target of worker is healthy: timed out",
        lambda each: each["elbv2", "describe_target_health"].update(
            TargetHealthDescriptions=[{"TargetHealth": {"State": "unhealthy", "Description": "timed out"}}]
        ),
    ),
    "metrics": (
        "1 of 1 tasks did not say where their metrics are: t1",
        lambda each: each["ecs", "describe_tasks"]["tasks"][0].update(tags=[]),
    ),
    "scaling": (
        "1 roles are elastic, 0 services",
        lambda each: each["application-autoscaling", "describe_scalable_targets"]["ScalableTargets"].clear(),
    ),
    "scaling suspended": (
        "somebody suspended the scaling of worker",
        lambda each: each["application-autoscaling", "describe_scalable_targets"]["ScalableTargets"][
            0
        ].update(SuspendedState={"ScheduledScalingSuspended": True}),
    ),
}


def test_each_check_has_a_wrong_fact() -> None:
    assert {name.partition(" ")[0] for name in WRONG} == set(ECS_CHECKS)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_fact_has_its_line(name: str) -> None:
    words, wrong = WRONG[name]
    answers = Answers()
    wrong(answers.answers)
    results = [
        each for each in run_checks(ECS_CHECKS, platform(answers)) if each.check == name.partition(" ")[0]
    ]
    assert any(words in each.message and each.severity in ("warning", "error") for each in results), results


@pytest.fixture
def context(account: Account) -> DoctorContext:
    return DoctorContext(account, load_blueprint("elastic-g6e").blueprint, "a.yaml", NOW)


class Parameters:
    """Systems Manager, with these public parameters alone."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def get_parameter(self, *, Name: str) -> dict[str, Any]:  # noqa: N803 - as boto3 has it
        if Name not in self._names:
            raise ClientError({"Error": {"Code": "ParameterNotFound"}}, "GetParameter")
        return {"Parameter": {"Value": "ami-1"}}


def with_parameters(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    real = Account.client
    monkeypatch.setattr(
        Account, "client", lambda self, name: Parameters(*names) if name == "ssm" else real(self, name)
    )


def test_a_missing_image_and_missing_roles_are_said(
    context: DoctorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_parameters(monkeypatch)
    results = list(run_checks(cluster_checks.ECS_CHECKS, context))
    assert [(each.check, each.severity) for each in results] == [
        ("host image", "error"),
        ("ECS roles", "warning"),
        ("ECS roles", "warning"),
    ]
    assert all(each.command for each in results)


def test_an_account_with_image_and_roles_is_ready(
    context: DoctorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    iam = context.account.client("iam")
    for name in ("ecs.amazonaws.com", "ecs.application-autoscaling.amazonaws.com"):
        iam.create_service_linked_role(AWSServiceName=name)
    with_parameters(monkeypatch, ecs_host_image().parameter("gpu"))
    results = list(run_checks(cluster_checks.ECS_CHECKS, context))
    assert [(each.check, each.severity) for each in results] == [("host image", "ok"), ("ECS roles", "ok")]


def on_ecs(blueprint: Blueprint) -> Blueprint:
    cluster = Cluster(ecs=EcsCluster())
    return blueprint.model_copy(update={"spec": blueprint.spec.model_copy(update={"cluster": cluster})})


def test_doctor_asks_about_ecs_only_for_a_platform_on_ecs(
    context: DoctorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "CHECKS", {})
    monkeypatch.setattr(access_checks, "credentials", lambda _: CheckResult("credentials", "ok", ""))
    eks = [each.check for each in doctor_checks.check_environment(context)]
    there = replace(context, blueprint=on_ecs(context.blueprint))
    ecs = {each.check for each in doctor_checks.check_environment(there)}
    assert eks == ["credentials"]
    assert ecs == {"credentials", *cluster_checks.ECS_CHECKS}


def test_verify_asks_no_api_server_and_names_the_models_that_it_did_not_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blueprint = on_ecs(load_blueprint("elastic-g6e").blueprint)
    monkeypatch.setattr(verification, "Account", lambda _: Answers())
    monkeypatch.setattr(verification, "assemble", lambda _: SynthesisedPlatform({}, {}))
    monkeypatch.setattr(verification, "EVERYWHERE_CHECKS", {})
    monkeypatch.setattr(verification, "connect", lambda *_: pytest.fail("there is no API server"))
    monkeypatch.setattr(access_checks, "credentials", lambda _: CheckResult("credentials", "ok", ""))
    results = list(verification.verify(blueprint, "a.yaml"))
    models = [model.name for model in blueprint.spec.models]
    assert [each.check for each in results] == ["credentials", *ECS_CHECKS, *("tokens" for _ in models)]
    assert all(name in each.message for name, each in zip(models, results[-len(models) :], strict=True))
    assert {each.severity for each in results[-len(models) :]} == {"unknown"}


@pytest.mark.parametrize(("runs", "severity"), [(3, "ok"), (0, "error")])
def test_verify_asks_for_the_controllers_on_ecs_too(
    monkeypatch: pytest.MonkeyPatch, runs: int, severity: str
) -> None:
    blueprint = on_ecs(load_blueprint("elastic-g6e").blueprint)
    sections = {"gpu_health": GpuHealth(), "capacity_shift": CapacityShift()}
    blueprint = blueprint.model_copy(update={"spec": blueprint.spec.model_copy(update=sections)})
    answers = Answers(operated())
    answers.answers["cloudwatch", "get_metric_statistics"] = {"Datapoints": [{"Sum": 1.0}] * runs}
    monkeypatch.setattr(verification, "Account", lambda _: answers)
    monkeypatch.setattr(verification, "assemble", lambda _: SynthesisedPlatform({}, {}))
    monkeypatch.setattr(access_checks, "credentials", lambda _: CheckResult("credentials", "ok", ""))
    results = [each for each in verification.verify(blueprint, "a.yaml") if each.check == "controllers"]
    assert [(each.severity, each.message) for each in results] == [
        ("ok", "the table cases is ACTIVE"),
        (severity, f"gpu-health ended {runs} runs within 3 minutes"),
        (severity, f"capacity-shift ended {runs} runs within 3 minutes"),
        ("ok", "the freeze switch is off"),
    ]
    assert all("/operations/" in str(each.command) for each in results if each.severity == "error")
