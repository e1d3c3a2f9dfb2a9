"""Examples of what managed services refuse: Step Functions, add-ons, schedules, caches and Flink."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.local.emulator.refused import ANYTHING, ROLE, SCHEDULE, Call, Resource, bucket, policy

ACCOUNT_ROLE = "arn:aws:iam::123456789012:role/"
LOG = "arn:aws:logs:us-west-2:123456789012:log-group:/aws/vendedlogs/states/try"


def made_role(name: str, service: str) -> Call:
    """Call that makes a role that a service may take."""
    trust = policy({"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"})
    return Call("iam", "create_role", {"RoleName": name, "AssumeRolePolicyDocument": trust})


def state(**fields: Any) -> dict[str, Any]:
    return {"Type": "Pass", "End": True, **fields}


def task(**fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True, **fields}


def definition(states: Mapping[str, Any], **fields: Any) -> str:
    return json.dumps({"StartAt": "First", "States": states, **fields})


def machine(text: str, **others: Any) -> Call:
    return Call(
        "stepfunctions",
        "create_state_machine",
        {"name": "refused", "roleArn": ROLE, "definition": text, **others},
    )


def first(fields: Mapping[str, Any], **others: Any) -> Call:
    """Call that makes a machine with one state."""
    return machine(definition({"First": dict(fields)}, **others))


def logged(*arns: str, level: str = "ALL") -> dict[str, Any]:
    places = [{"cloudWatchLogsLogGroup": {"logGroupArn": each}} for each in arns]
    return {"loggingConfiguration": {"level": level, "destinations": places}}


def mapped(child: str, **fields: Any) -> dict[str, Any]:
    processor = {"StartAt": child, "States": {child: state()}}
    return {"Type": "Map", "ItemProcessor": processor, "End": True, **fields}


GOOD = definition({"First": state()})
DEFINITIONS: Mapping[str, Call | Resource] = {
    "MACHINE_JSON": machine("{'StartAt': 'First'}"),
    "MACHINE_FIELDS": machine(json.dumps({"StartAt": "First"})),
    "MACHINE_TARGET": first({"Type": "Pass", "Next": "Frist"}),
    "MACHINE_UNREACHABLE": Resource(
        "AWS::StepFunctions::StateMachine",
        {"RoleArn": ROLE, "DefinitionString": definition({"First": state(), "Left": state()})},
    ),
    "MACHINE_TYPE": first(state(Type="Function")),
    "MACHINE_LANGUAGE": first(state(QueryLanguage="JSONPath"), QueryLanguage="JSONata"),
    "MACHINE_EXPRESS_TOKEN": machine(
        definition({"First": task(Resource="arn:aws:states:::sqs:sendMessage.waitForTaskToken")}),
        type="EXPRESS",
    ),
    "MACHINE_RESOURCE": first(task(Resource="arn:aws:states:::aws-sdk:ec2:RunInstances")),
    "MACHINE_FIELD": first(task(Timeout=10)),
    "MACHINE_JSONPATH": first(task(Parameters={"FunctionName": "f"}), QueryLanguage="JSONata"),
    "MACHINE_END": first({"Type": "Pass"}),
    "MACHINE_STATE_NAME": machine(json.dumps({"StartAt": "s" * 81, "States": {"s" * 81: state()}})),
    "MACHINE_STATE_TWICE": first(mapped("First")),
    "MACHINE_LABEL": first(mapped("Child", Label="shards of a very long name of some model's job")),
    "MACHINE_ALL_ERRORS": first(
        task(
            Retry=[
                {"ErrorEquals": ["States.ALL"], "MaxAttempts": 1},
                {"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1},
            ]
        )
    ),
    "MACHINE_RETRIER": first(
        task(Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 60, "MaxDelaySeconds": 60}])
    ),
    "MACHINE_HEARTBEAT": first(task(HeartbeatSeconds=60, TimeoutSeconds=60)),
    "MACHINE_NAME": machine(GOOD, name="a job"),
    "MACHINE_LOG": machine(GOOD, **logged()),
    "MACHINE_LOG_ARN": machine(GOOD, **logged(LOG)),
    "MACHINE_ROLE": Call(
        "stepfunctions",
        "create_state_machine",
        {"name": "untrusted", "roleArn": f"{ACCOUNT_ROLE}of-ec2", "definition": GOOD},
        (made_role("of-ec2", "ec2.amazonaws.com"),),
    ),
    "MACHINE_LOG_ROLE": Call(
        "stepfunctions",
        "create_state_machine",
        {
            "name": "silent",
            "roleArn": f"{ACCOUNT_ROLE}silent",
            "definition": GOOD,
            **logged(f"{LOG}:*"),
        },
        (
            made_role("silent", "states.amazonaws.com"),
            Call(
                "iam",
                "put_role_policy",
                {"RoleName": "silent", "PolicyName": "p", "PolicyDocument": policy(ANYTHING)},
            ),
        ),
    ),
    "EXECUTION_INPUT": Call(
        "stepfunctions",
        "start_execution",
        {
            "stateMachineArn": "arn:aws:states:us-west-2:123456789012:stateMachine:any",
            "input": "not JSON",
        },
    ),
    "TASK_OUTPUT": Call("stepfunctions", "send_task_success", {"taskToken": "t", "output": "not JSON"}),
    "TASK_ENDED": Call(
        "stepfunctions",
        "send_task_success",
        {"taskToken": "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f", "output": "{}"},
    ),
    "TOKEN_UNKNOWN": Call("stepfunctions", "send_task_failure", {"taskToken": "none"}),
}


def add_on(name: str = "vpc-cni", **properties: Any) -> Resource:
    return Resource("AWS::EKS::Addon", {"ClusterName": "c", "AddonName": name, **properties})


CLUSTER = Call(
    "eks",
    "create_cluster",
    {
        "name": "with-add-on",
        "roleArn": ROLE,
        "resourcesVpcConfig": {"subnetIds": ["subnet-1", "subnet-2"]},
    },
)
COREDNS = Call("eks", "create_addon", {"clusterName": "with-add-on", "addonName": "coredns"})
ADD_ONS: Mapping[str, Call | Resource] = {
    "ADDON_NAME": add_on("vpc-cin"),
    "ADDON_VERSION": add_on(AddonVersion="1.20.4"),
    "ADDON_VALUE_KIND": add_on(ConfigurationValues='{"enableNetworkPolicy": true}'),
    "ADDON_VALUE_UNKNOWN": Call(
        "eks",
        "create_addon",
        {
            "clusterName": "c",
            "addonName": "eks-node-monitoring-agent",
            "configurationValues": '{"dcgmAgent": {"toleration": []}}',
        },
    ),
    "ADDON_EXISTS": Call("eks", "create_addon", COREDNS.parameters, (CLUSTER, COREDNS)),
    "ADDON_CLUSTER": Call("eks", "create_addon", {"clusterName": "absent", "addonName": "coredns"}),
}


def schedule(**changes: Any) -> Call:
    return Call("scheduler", "create_schedule", {**SCHEDULE, "Name": "refused", **changes})


def target(**changes: Any) -> Call:
    return schedule(Target={**SCHEDULE["Target"], **changes})


SCHEDULES: Mapping[str, Call | Resource] = {
    "SCHEDULE_ROLE": Resource(
        "AWS::Scheduler::Schedule",
        {
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ScheduleExpression": "rate(1 minute)",
            "Target": {**SCHEDULE["Target"], "RoleArn": f"{ACCOUNT_ROLE}of-events"},
        },
        calls=(made_role("of-events", "events.amazonaws.com"),),
    ),
    "SCHEDULE_WINDOW": schedule(FlexibleTimeWindow={"Mode": "FLEXIBLE"}),
    "SCHEDULE_ZONE": schedule(ScheduleExpressionTimezone="Europe/Zuerich"),
    "SCHEDULE_TARGET": target(Arn="submit"),
    "SCHEDULE_INPUT": target(
        Arn="arn:aws:lambda:us-west-2:123456789012:function:submit", Input="queue: nightly"
    ),
    "SCHEDULE_INPUT_SIZE": target(Input=json.dumps({"manifest": "x" * 262_144})),
    "SCHEDULE_GROUP": schedule(GroupName="absent"),
}


def cache(**properties: Any) -> Resource:
    return Resource(
        "AWS::ElastiCache::ServerlessCache",
        {"ServerlessCacheName": "refused", "Engine": "valkey", **properties},
    )


def user(name: str, **properties: Any) -> Call:
    given = {"UserId": name, "UserName": name, "Engine": "valkey", "AccessString": "on ~* +@read"}
    return Call("elasticache", "create_user", {**given, "AuthenticationMode": {"Type": "iam"}, **properties})


def group(*users: str, engine: str = "valkey") -> dict[str, Any]:
    return {"UserGroupId": "refused", "Engine": engine, "UserIds": list(users)}


CACHES: Mapping[str, Call | Resource] = {
    "CACHE_UNITS": cache(CacheUsageLimits={"ECPUPerSecond": {"Maximum": 5}}),
    "CACHE_STORAGE": cache(CacheUsageLimits={"DataStorage": {"Maximum": 5001, "Unit": "GB"}}),
    "CACHE_NAME": cache(ServerlessCacheName="my--signals"),
    "CACHE_NAME_LENGTH": Resource("AWS::ElastiCache::UserGroup", {**group(), "UserGroupId": "u" * 41}),
    "CACHE_SUBNETS": cache(SubnetIds=["subnet-1", "subnet-2", "subnet-3", "subnet-4"]),
    "CACHE_VERSION": cache(MajorEngineVersion="6"),
    "CACHE_SNAPSHOTS": cache(SnapshotRetentionLimit=36),
    "CACHE_USER_GROUP": cache(UserGroupId="absent"),
    "GROUP_USER": Resource("AWS::ElastiCache::UserGroup", group("absent")),
    "GROUP_DEFAULT": Resource(
        "AWS::ElastiCache::UserGroup", group("of-redis", engine="redis"), calls=(user("of-redis"),)
    ),
    "GROUP_NAMES": Resource(
        "AWS::ElastiCache::UserGroup",
        group("first", "second"),
        calls=tuple(
            user(name, UserName="same", AuthenticationMode={"Type": "password", "Passwords": ["p" * 16]})
            for name in ("first", "second")
        ),
    ),
    "GROUP_SIZE": Resource("AWS::ElastiCache::UserGroup", group(*(f"u{each}" for each in range(101)))),
    "USER_OPEN": user("open", UserName="open", AuthenticationMode={"Type": "no-password-required"}),
    "USER_EXISTS": Call("elasticache", "create_user", user("twice").parameters, (user("twice"),)),
}


def application(name: str, key: str = "job.jar", role: str = ROLE, **sizes: Any) -> Call:
    content = {"S3ContentLocation": {"BucketARN": "arn:aws:s3:::programs", "FileKey": key}}
    return Call(
        "kinesisanalyticsv2",
        "create_application",
        {
            "ApplicationName": name,
            "RuntimeEnvironment": "FLINK-2_3",
            "ServiceExecutionRole": role,
            "ApplicationConfiguration": {
                "ApplicationCodeConfiguration": {"CodeContent": content, "CodeContentType": "ZIPFILE"},
                "FlinkApplicationConfiguration": {
                    "ParallelismConfiguration": {"ConfigurationType": "CUSTOM", **sizes}
                },
            },
        },
    )


def started(name: str) -> Call:
    return Call("kinesisanalyticsv2", "start_application", {"ApplicationName": name})


FLINK: Mapping[str, Call | Resource] = {
    "FLINK_ROLE": Call(
        "kinesisanalyticsv2",
        "create_application",
        application("untrusted", role=f"{ACCOUNT_ROLE}of-flink").parameters,
        (made_role("of-flink", "flink.amazonaws.com"),),
    ),
    "FLINK_CODE": Call(
        "kinesisanalyticsv2",
        "create_application",
        application("absent", "absent.jar").parameters,
        (bucket("programs"),),
    ),
    "FLINK_SUBTASKS": application("dense", Parallelism=16, ParallelismPerKPU=16),
    "FLINK_UNITS": application("large", Parallelism=65, ParallelismPerKPU=1),
    "APPLICATION_EXISTS": Call(
        "kinesisanalyticsv2",
        "create_application",
        application("twice", role=ROLE).parameters,
        (application("twice", role=ROLE),),
    ),
    "APPLICATION_RUNS": Call(
        "kinesisanalyticsv2",
        "start_application",
        {"ApplicationName": "runs"},
        (application("runs"), started("runs")),
    ),
}
BAKES: Mapping[str, Call | Resource] = {
    "CLIENT_TOKEN": Call(
        "ec2", "run_instances", {"MinCount": 1, "MaxCount": 1, "ClientToken": "p" * 65, "ImageId": "ami-1"}
    ),
}
MANAGED: Mapping[str, Call | Resource] = {
    **DEFINITIONS,
    **ADD_ONS,
    **SCHEDULES,
    **CACHES,
    **FLINK,
    **BAKES,
}
