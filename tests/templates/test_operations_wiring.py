"""The resources of the Operations stack name each other: what one of them writes, another one reads."""

from __future__ import annotations

from typing import Any

import pytest

from inference_contracts import health_names, operations_names, shift_names
from tests.templates.conftest import SynthesiseShipped
from tests.templates.support import Templates, listed, statements, text

STACK, PLATFORM = "Operations", "capacity"
FUNCTIONS = {
    "health-minute": "gpu_health.minute.handle",
    "health-signals": "gpu_health.fault_alarms.handle",
    "capacity-shift": "capacity_shift.handlers.shift",
}
#: Functions that run each minute, and what they write as `service`.
EACH_MINUTE = {
    "health-minute": operations_names.HEALTH_SERVICE,
    "capacity-shift": operations_names.SHIFT_SERVICE,
}


@pytest.fixture(scope="module")
def operations(synthesise_shipped: SynthesiseShipped) -> Templates:
    """Templates of the blueprint with both controllers."""
    return synthesise_shipped("capacity-and-health")


def named(templates: Templates, resource_type: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the resources of a type, by their names in the template."""
    resources = templates.by_stack[STACK]["Resources"]
    return {name: each["Properties"] for name, each in resources.items() if each["Type"] == resource_type}


def only_name(templates: Templates, resource_type: str) -> str:
    """Return the name of the one resource of a type."""
    (name,) = named(templates, resource_type)
    return name


def topic(templates: Templates) -> str:
    return text({"Ref": only_name(templates, "AWS::SNS::Topic")})


def lost_events(templates: Templates) -> str:
    return f"${{{only_name(templates, 'AWS::SQS::Queue')}.Arn}}"


def functions(templates: Templates) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the name in the template and the properties of each function."""
    found = named(templates, "AWS::Lambda::Function").items()
    return {
        function: next((name, each) for name, each in found if each["Handler"] == handler)
        for function, handler in FUNCTIONS.items()
    }


def allowed(templates: Templates, role: str) -> dict[str, set[str]]:
    """Return the resources on which a role may do each action."""
    may: dict[str, set[str]] = {}
    for policy in named(templates, "AWS::IAM::Policy").values():
        if policy["Roles"] == [{"Ref": role}]:
            for each in statements({"Properties": policy}):
                for action in listed(each["Action"]) if each["Effect"] == "Allow" else ():
                    may.setdefault(action, set()).update(text(one) for one in listed(each["Resource"]))
    return may


def alarms(templates: Templates) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the alarms on metrics by the name of the metric, and the service, function or queue."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in named(templates, "AWS::CloudWatch::Alarm").values():
        if "MetricName" in each:
            values = {one["Name"]: text(one["Value"]) for one in each["Dimensions"]}
            about = values.get("service") or values.get("FunctionName") or values["QueueName"]
            assert (each["MetricName"], about) not in found
            found[each["MetricName"], about] = each
    return found


def test_every_function_has_what_its_code_reads(operations: Templates) -> None:
    table, batch = only_name(operations, "AWS::DynamoDB::GlobalTable"), "${capacity-Data.JobTableName}"
    for function, (_, each) in functions(operations).items():
        variables = {name: text(value) for name, value in each["Environment"]["Variables"].items()}
        assert variables[operations_names.PLATFORM] == variables[operations_names.CLUSTER] == PLATFORM
        assert variables[operations_names.CELL] == operations_names.MAIN_CELL
        assert variables[operations_names.TABLE] == f"${{{table}}}"
        assert variables[operations_names.TOPIC_ARN] == topic(operations)
        (switch,) = named(operations, "AWS::SSM::Parameter").values()
        assert variables[operations_names.FREEZE_PARAMETER] == switch["Name"]
        assert "Endpoint" in variables[operations_names.CLUSTER_ENDPOINT]
        assert "CertificateAuthority" in variables[operations_names.CLUSTER_AUTHORITY]
        assert variables.get(shift_names.SHIFT_BATCH_TABLE) == (batch if "shift" in function else None)
        assert (health_names.HEALTH_SETTINGS in variables) == ("health" in function)


def test_every_function_has_time_memory_numpy_and_its_own_log(operations: Templates) -> None:
    limits = {
        function: (each["Timeout"], each["ReservedConcurrentExecutions"], each["Runtime"])
        for function, (_, each) in functions(operations).items()
    }
    # What runs each minute ends before the next run; an event is tried again after half a minute.
    assert limits == {
        "health-minute": (55, 1, "python3.14"),
        "health-signals": (30, 5, "python3.14"),
        "capacity-shift": (55, 1, "python3.14"),
    }
    for function, (_, each) in functions(operations).items():
        # With 1,769 MB a function has one vCPU:
        # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
        assert each["MemorySize"] == 1769
        (layer,) = each["Layers"]
        assert "AWSSDKPandas-Python314-Arm64" in layer
        group = named(operations, "AWS::Logs::LogGroup")[each["LoggingConfig"]["LogGroup"]["Ref"]]
        assert group["LogGroupName"].endswith(f"/{function}")


def test_no_role_reaches_items_of_other_cells(operations: Templates) -> None:
    own = {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [f"{PLATFORM}#{operations_names.MAIN_CELL}"]}
    }
    of_batch = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{shift_names.CEILING_PREFIX}*"]}}
    conditions = [
        each["Condition"]
        for policy in named(operations, "AWS::IAM::Policy").values()
        for each in statements({"Properties": policy})
        if "dynamodb:PutItem" in listed(each["Action"])
    ]
    assert sorted(conditions, key=str) == sorted([own, own, of_batch], key=str)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_reaches_the_resources_of_its_functions_alone(operations: Templates, function: str) -> None:
    _, each = functions(operations)[function]
    may = allowed(operations, each["Role"]["Fn::GetAtt"][0])
    table, switch = (
        only_name(operations, name) for name in ("AWS::DynamoDB::GlobalTable", "AWS::SSM::Parameter")
    )
    assert f"${{{table}.Arn}}" in may["dynamodb:PutItem"]
    assert may["dynamodb:GetItem"] == may["dynamodb:Query"] == {f"${{{table}.Arn}}"}
    assert may["dynamodb:PutItem"] - {f"${{{table}.Arn}}"} == (
        {"arn:aws:dynamodb:us-west-2:${AWS::AccountId}:table/${capacity-Data.JobTableName}"}
        if "shift" in function
        else set()
    )
    assert may["ssm:GetParameter"] == {f"arn:aws:ssm:us-west-2:${{AWS::AccountId}}:parameter${{{switch}}}"}
    assert may["sns:Publish"] == {topic(operations)}
    group = each["LoggingConfig"]["LogGroup"]["Ref"]
    assert f"${{{group}.Arn}}" in may["logs:PutLogEvents"]
    assert "*" not in may["logs:PutLogEvents"] | may["kms:Decrypt"] | may["kms:GenerateDataKey"]


@pytest.mark.parametrize(
    ("function", "group"),
    [
        ("health-minute", operations_names.HEALTH_GROUP),
        ("health-signals", operations_names.HEALTH_GROUP),
        ("capacity-shift", operations_names.SHIFT_GROUP),
    ],
)
def test_a_role_is_that_of_lambda_and_of_its_group(operations: Templates, function: str, group: str) -> None:
    _, each = functions(operations)[function]
    (entry,) = (
        entry
        for entry in named(operations, "AWS::EKS::AccessEntry").values()
        if entry["KubernetesGroups"] == [group]
    )
    assert entry["PrincipalArn"] == each["Role"]
    assert (entry["ClusterName"], entry["Type"], entry.get("AccessPolicies")) == (PLATFORM, "STANDARD", None)
    role = named(operations, "AWS::IAM::Role")[each["Role"]["Fn::GetAtt"][0]]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_each_minute_has_a_schedule_that_is_on(operations: Templates) -> None:
    schedules = named(operations, "AWS::Scheduler::Schedule").values()
    called = {text(each["Target"]["Arn"]) for each in schedules}
    assert called == {f"${{{functions(operations)[each][0]}.Arn}}" for each in EACH_MINUTE}
    for each in schedules:
        assert (each["State"], each["ScheduleExpression"]) == ("ENABLED", "rate(1 minute)")
        assert each["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert text(each["Target"]["DeadLetterConfig"]["Arn"]) == lost_events(operations)
        # The next minute does its work.
        assert each["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}
        may = allowed(operations, each["Target"]["RoleArn"]["Fn::GetAtt"][0])
        assert may == {
            "lambda:InvokeFunction": {text(each["Target"]["Arn"])},
            "sqs:SendMessage": {lost_events(operations)},
        }


def test_the_rule_of_nodes_in_alarm_is_on_and_may_call_its_function(operations: Templates) -> None:
    ((rule, properties),) = named(operations, "AWS::Events::Rule").items()
    assert properties["State"] == "ENABLED"
    (target,) = properties["Targets"]
    function = f"${{{functions(operations)['health-signals'][0]}.Arn}}"
    assert text(target["Arn"]) == function
    (permission,) = named(operations, "AWS::Lambda::Permission").values()
    assert text(permission["FunctionName"]) == function
    assert (permission["Principal"], text(permission["SourceArn"])) == (
        "events.amazonaws.com",
        f"${{{rule}.Arn}}",
    )


def test_alarms_are_about_what_is_there(operations: Templates) -> None:
    """Each looks at a metric that its function writes, or AWS, once a minute and by the right statistic."""
    of_lambda = {
        (metric, f"${{{name}}}"): ("AWS/Lambda", "Sum")
        for name, _ in functions(operations).values()
        for metric in ("Errors", "Throttles")
    }
    queue = f"${{{only_name(operations, 'AWS::SQS::Queue')}.QueueName}}"
    own, health, shift = (
        operations_names.METRIC_NAMESPACE,
        operations_names.HEALTH_SERVICE,
        operations_names.SHIFT_SERVICE,
    )
    assert {about: (each["Namespace"], each["Statistic"]) for about, each in alarms(operations).items()} == {
        **of_lambda,
        (operations_names.RUNS, health): (own, "Sum"),
        (operations_names.RUNS, shift): (own, "Sum"),
        (health_names.OLDEST_CASE_SECONDS, health): (own, "Maximum"),
        (health_names.CASES_HELD, health): (own, "Maximum"),
        (health_names.METRICS_AGE_SECONDS, health): (own, "Maximum"),
        (shift_names.SHIFT_FAILURES, shift): (own, "Sum"),
        (shift_names.SHIFT_UNMEASURED, shift): (own, "Maximum"),
        ("ApproximateNumberOfMessagesVisible", queue): ("AWS/SQS", "Maximum"),
    }
    for (metric, _), each in alarms(operations).items():
        assert each["Period"] == 60
        assert each.get("ActionsEnabled", True)
        assert [text(one) for one in each["AlarmActions"]] == [topic(operations)]
        missing = "breaching" if metric == operations_names.RUNS else "notBreaching"
        assert each["TreatMissingData"] == missing
        if each["Namespace"] == own:
            dimensions = {one["Name"]: one["Value"] for one in each["Dimensions"]}
            assert dimensions.keys() == set(operations_names.METRIC_DIMENSIONS)
            assert (dimensions["platform"], dimensions["cell"]) == (PLATFORM, operations_names.MAIN_CELL)


def test_every_alarm_says_which_function_it_is_about(operations: Templates) -> None:
    logical = {name: function for function, (name, _) in functions(operations).items()}
    for (_, about), each in alarms(operations).items():
        function = logical.get(about.removeprefix("${").removesuffix("}"))
        if function is not None:
            assert function in each["AlarmDescription"]


def test_the_table_keeps_what_code_writes_and_forgets_what_expired(operations: Templates) -> None:
    (table,) = named(operations, "AWS::DynamoDB::GlobalTable").values()
    assert {each["AttributeName"]: each["KeyType"] for each in table["KeySchema"]} == {
        operations_names.SCOPE_ATTRIBUTE: "HASH",
        operations_names.ENTRY_ATTRIBUTE: "RANGE",
    }
    assert table["TimeToLiveSpecification"] == {
        "AttributeName": operations_names.EXPIRY_ATTRIBUTE,
        "Enabled": True,
    }
    assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}
    (replica,) = table["Replicas"]
    assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert replica["SSESpecification"]["KMSMasterKeyId"]
