"""What AWS refuses, the emulator refuses: names that exist, and changes that need a second resource."""

from __future__ import annotations

import pytest
from ministack.services import cloudwatch_logs, ec2, iam, s3
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_blueprints.resources import root
from inference_local.emulator.patches import log_group_names, network_names
from inference_local.emulator.refusals import AwsApiError
from inference_local.emulator.request_refusals import refusals, refused_resource, refused_update
from inference_local.emulator.resource_handlers.registry import ResourceRequest, register
from inference_local.emulator.resource_handlers.stubs import STUBS, StubHandler
from tests.local.emulator.refused import EXAMPLES, LATER, OF_ECS
from tests.local.emulator.refused_managed import MANAGED

ASSOCIATION = "AWS::EKS::PodIdentityAssociation"
PROPERTIES = {"ClusterName": "a", "Namespace": "keda", "ServiceAccount": "keda-operator", "RoleArn": "arn"}


def test_every_refusal_names_its_source_and_has_an_example() -> None:
    """An invented refusal would make the stand-in stricter than AWS; one that nobody sends may not work."""
    rows = refusals()
    assert len(rows) > 50
    assert [name for name, row in rows.items() if not (row.source and row.when and row.message)] == []
    assert rows.keys() == EXAMPLES.keys() | MANAGED.keys() | OF_ECS.keys() | LATER.keys()
    assert [name for name, file in LATER.items() if name not in (root() / file).read_text("utf-8")] == []


def test_a_service_account_has_one_association() -> None:
    """Two stacks gave one service account a role each: the upgrade of batch-g6e stopped in EKS only."""
    handler = StubHandler(ASSOCIATION, STUBS[ASSOCIATION])
    made, _ = handler.create(ResourceRequest("batch-Batch", "Old", PROPERTIES))
    with pytest.raises(AwsApiError, match=f"Association already exists: {made}"):
        handler.create(ResourceRequest("batch-Platform", "New", PROPERTIES))
    handler.create(ResourceRequest("batch-Platform", "Other", PROPERTIES | {"ServiceAccount": "keda"}))
    handler.delete(ResourceRequest("", "", PROPERTIES, made))
    handler.create(ResourceRequest("batch-Platform", "New", PROPERTIES))


def test_a_name_in_the_template_prevents_a_second_resource() -> None:
    """The stub changed in place what CloudFormation replaces, so the refusal came in AWS only."""
    created = {"TopicName": "events", "ClusterArn": "arn", "PartitionCount": 2, "ReplicationFactor": 2}
    handler = StubHandler("AWS::MSK::Topic", STUBS["AWS::MSK::Topic"])
    plain = _RESOURCE_HANDLERS.get("AWS::MSK::Topic")
    try:
        register("AWS::MSK::Topic", handler)
        update = _RESOURCE_HANDLERS["AWS::MSK::Topic"]["update"]
        made, _ = handler.create(ResourceRequest("s", "Topic", created))
        assert update(made, created, created | {"PartitionCount": 4}, "s", "Topic")[0] == made
        with pytest.raises(AwsApiError, match="custom-named resource requires replacing"):
            update(made, created, created | {"ReplicationFactor": 3}, "s", "Topic")
        assert update(made, created, created | {"TopicName": "other"}, "s", "Topic")[0] != made
    finally:
        _RESOURCE_HANDLERS.pop("AWS::MSK::Topic")
        if plain:
            _RESOURCE_HANDLERS["AWS::MSK::Topic"] = plain


def test_a_log_group_that_exists_is_not_made_again() -> None:
    """EKS makes the group of a control plane; a release that adds it to a template could not be deployed."""
    cloudwatch_logs._create_log_group({"logGroupName": "/aws/eks/a/cluster"})
    try:
        with pytest.raises(AwsApiError, match=r"/aws/eks/a/cluster.* already exists"):
            log_group_names._create("Log", {"LogGroupName": "/aws/eks/a/cluster"}, "a-Cluster")
    finally:
        cloudwatch_logs._delete_log_group({"logGroupName": "/aws/eks/a/cluster"})


def test_an_endpoint_has_one_subnet_per_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """ENDPOINT_ZONES: red if an endpoint in two subnets of one zone is made here, which EC2 refuses."""
    zones = {"subnet-1": "us-west-2a", "subnet-2": "us-west-2b", "subnet-3": "us-west-2a"}
    described = {name: {"AvailabilityZone": zone} for name, zone in zones.items()}
    monkeypatch.setattr(ec2, "_subnets", described)
    properties = {
        "VpcId": "vpc-zones",
        "ServiceName": "com.amazonaws.us-west-2.sqs",
        "SubnetIds": list(zones),
    }
    with pytest.raises(AwsApiError, match="in the availability zone of subnet-3"):
        network_names._create_endpoint("It", properties, "s")
    network_names._create_endpoint("It", {**properties, "SubnetIds": ["subnet-1", "subnet-2"]}, "s")


def test_a_cache_does_not_go_back() -> None:
    """CACHE_ENGINE: red if a release with an older version of Valkey can be deployed here only."""
    kind, cache = "AWS::ElastiCache::ServerlessCache", {"Engine": "valkey", "MajorEngineVersion": "8"}
    error = refused_update(kind, cache, {**cache, "MajorEngineVersion": "7"})
    assert error
    assert "cannot change from valkey 8 to valkey 7" in str(error)
    assert refused_update(kind, cache, {**cache, "MajorEngineVersion": "9"}) is None
    assert refused_update(kind, cache, {**cache, "Engine": "redis"})
    assert refused_update(kind, {"Engine": "redis", "MajorEngineVersion": "7"}, cache) is None


def test_a_program_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """FLINK_CODE_SIZE: red if a program can be deployed here that the service does not take."""
    monkeypatch.setattr(s3, "_buckets", {"programs": {}})
    monkeypatch.setattr(s3, "_get_object_data", lambda *_: range(536_870_913))
    content = {"S3ContentLocation": {"BucketARN": "arn:aws:s3:::programs", "FileKey": "job.jar"}}
    configuration = {"ApplicationCodeConfiguration": {"CodeContent": content}}
    application = {"ApplicationConfiguration": configuration}
    assert "more than 512 MiB" in str(refused_resource("AWS::KinesisAnalyticsV2::Application", application))


#: localstack/localstack, tests/aws/services/scheduler/test_scheduler.py, recorded from AWS.
TAKEN = (
    "cron(0-15/1 8-8 ? * 2,3,4,5,6,7 *)",
    "cron(30-30 13-13 ? * 2,4,6 *)",
    "cron(1-31/30 1-1 ? * 1,7 *)",
    "cron(0 18 ? * MON-FRI *)",
    "cron(*/15 * * * ? *)",
    "cron(0-59/10 0-23/2 ? * * *)",
)
REFUSED = (
    *("cron(0 1 * * * *)", "cron(7 20 * * NOT *)", "cron(INVALID)", "cron(0 dummy ? * MON-FRI *)"),
    *("cron(71 8 1 * ? *)", "cron()", "rate(10 seconds)", "rate(10 years)", "rate()", "rate(10)"),
    *("rate(10 minutess)", "rate(-10 minutes)", "rate( 10 minutes )", " rate(10 minutes)"),
    *("at(2021-12-31T23:59:59Z)", "at(2021-12-31)"),
)


def test_expressions_are_judged_as_aws_does() -> None:
    """SCHEDULER_FORM: red if the blueprint's check of `cron`, which the emulator uses, differs from AWS."""

    def is_refused(expression: str) -> bool:
        return refused_resource("AWS::Scheduler::Schedule", {"ScheduleExpression": expression}) is not None

    assert [each for each in TAKEN if is_refused(each)] == []
    assert [each for each in REFUSED if not is_refused(each)] == []


def test_an_attached_policy_lets_a_machine_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """MACHINE_LOG_ROLE: the role of a machine that is updated has policies of both kinds."""
    arn, policy = "arn:aws:iam::123456789012:role/machine", "arn:aws:iam::123456789012:policy/logs"
    trust = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = {"Arn": arn, "AssumeRolePolicyDocument": {"Statement": trust}, "InlinePolicies": {}}
    role["AttachedPolicies"] = [policy]
    monkeypatch.setattr(iam, "_roles", {"machine": role})
    log = {"CloudWatchLogsLogGroup": {"LogGroupArn": "arn:aws:logs:us-west-2:123456789012:log-group:g:*"}}
    machine = {"RoleArn": arn, "LoggingConfiguration": {"Level": "ALL", "Destinations": [log]}}

    def error(action: str) -> AwsApiError | None:
        document = {"Statement": {"Effect": "Allow", "Action": action, "Resource": "*"}}
        monkeypatch.setattr(iam, "_policies", {policy: {"Versions": {"v1": {"Document": document}}}})
        return refused_resource("AWS::StepFunctions::StateMachine", machine)

    assert error("logs:CreateLogDelivery") is None
    assert "not authorized to access the Log Destination" in str(error("states:StartExecution"))
