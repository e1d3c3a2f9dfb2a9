"""The front door in AWS, on EKS and on ECS: who reaches it, what it may do, what is kept, and what a change
replaces.
"""

from __future__ import annotations

import base64
import json
from dataclasses import fields
from typing import Any

import pytest

from inference_catalog.charts import charts
from inference_contracts.door_headers import READY_PATH
from inference_contracts.door_identities import CALLERS_PORT
from inference_contracts.door_names import DOOR_PORT, METRICS_PORT
from inference_contracts.trace_names import HTTP_PORT
from inference_contracts.usage_record import UsageRecord
from tests.templates.checks.hops import ingress
from tests.templates.checks.limits import exceeded_limits
from tests.templates.checks.lint import lint
from tests.templates.checks.refused import refused_by_aws
from tests.templates.conftest import Synthesise
from tests.templates.support import Resource, Templates, listed, statements, text

STACK, MODEL = "FrontDoor", "Model-qwen3-8b"
_CERTIFICATE = "arn:aws:acm:us-west-2:111122223333:certificate/0a1b2c3d-0000-4000-8000-000000000000"


def with_front_door(spec: dict[str, Any]) -> None:
    """Put a front door before the base document's model."""
    spec["network"] = {"certificateArn": _CERTIFICATE, "domain": "models.example.com"}
    spec["teams"] = [{"name": "ads", "monthlyBudgetUsd": 100}]
    spec["models"][0]["rates"] = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 0.4}
    spec["frontDoor"] = {"budgets": [{"team": "ads", "usdPerDay": 10}]}


def with_own_keys(spec: dict[str, Any]) -> None:
    """Let a team administer its own keys."""
    with_front_door(spec)
    spec["teams"][0]["principals"] = ["arn:aws:iam::111122223333:role/Ads"]


def on_ecs(spec: dict[str, Any]) -> None:
    with_front_door(spec)
    spec["cluster"] = {"ecs": {}}


def traced_on_ecs(spec: dict[str, Any]) -> None:
    on_ecs(spec)
    spec["observability"] = {"traces": {"sampleRatio": 0.25}}


def with_changed_rules(spec: dict[str, Any]) -> None:
    """Change what callers may use: a further name of the model, and another budget."""
    with_front_door(spec)
    spec["frontDoor"] |= {
        "models": [{"name": "qwen/qwen3-8b", "aliases": ["chat"], "to": [{"model": "qwen3-8b"}]}],
        "budgets": [{"team": "ads", "usdPerDay": 20}],
    }


def with_changed_rules_on_ecs(spec: dict[str, Any]) -> None:
    with_changed_rules(spec)
    spec["cluster"] = {"ecs": {}}


@pytest.fixture(scope="module")
def eks(synthesise: Synthesise) -> Templates:
    return synthesise(with_front_door)


@pytest.fixture(scope="module")
def ecs(synthesise: Synthesise) -> Templates:
    return synthesise(on_ecs)


@pytest.fixture(scope="module", params=[with_front_door, on_ecs], ids=["EKS", "ECS"])
def templates(request: pytest.FixtureRequest, synthesise: Synthesise) -> Templates:
    return synthesise(request.param)


def policies(templates: Templates, role: str) -> list[dict[str, Any]]:
    """Statements of a role of the stack, whose logical id begins so, in it and attached to it."""
    found = []
    for name, resource in templates.by_stack[STACK]["Resources"].items():
        roles = [each.get("Ref", "") for each in resource.get("Properties", {}).get("Roles", [])]
        if (resource["Type"] == "AWS::IAM::Role" and name.startswith(role)) or any(
            each.startswith(role) for each in roles
        ):
            found += list(statements(resource))
    return found


def allowed(statements_: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Resources by action."""
    found: dict[str, set[str]] = {}
    for statement in statements_:
        assert statement["Effect"] == "Allow"
        for action in listed(statement["Action"]):
            found.setdefault(action, set()).update(text(each) for each in listed(statement["Resource"]))
    return found


def test_without_the_section_there_is_no_front_door(base_templates: Templates) -> None:
    assert STACK not in base_templates.by_stack
    assert not [each for each in base_templates.by_stack["Data"]["Resources"] if each.startswith("Door")]


def test_cloudformation_takes_it(templates: Templates) -> None:
    assert lint(templates, "us-west-2") == []
    assert exceeded_limits(templates) == []
    assert refused_by_aws(templates) == []


def test_it_stands_before_the_models_whose_host_names_lead_to_it(templates: Templates) -> None:
    """Red if a rule of a model could lead to a door that is not deployed."""
    artifacts = templates.artifacts
    assert f"try-{STACK}" in artifacts[MODEL]["dependencies"]
    assert f"try-{MODEL}" not in artifacts[STACK]["dependencies"]
    assert {"try-Data", "try-Network"} <= set(artifacts[STACK]["dependencies"])


def test_the_load_balancer_reaches_it_with_tls_and_gives_streams_an_hour(templates: Templates) -> None:
    group = templates.only("AWS::ElasticLoadBalancingV2::TargetGroup", STACK)
    assert (group["Protocol"], group["Port"], group["TargetType"]) == ("HTTPS", DOOR_PORT, "ip")
    assert (group["HealthCheckProtocol"], group["HealthCheckPath"]) == ("HTTPS", READY_PATH)
    attributes = {each["Key"]: each["Value"] for each in group["TargetGroupAttributes"]}
    assert attributes["deregistration_delay.timeout_seconds"] == "3600"
    [rule] = templates.properties("AWS::ElasticLoadBalancingV2::ListenerRule", STACK)
    [condition] = rule["Conditions"]
    assert condition["HostHeaderConfig"]["Values"] == ["api.models.example.com"]


def weights(templates: Templates) -> dict[str, int]:
    """Weight of each target group of the model's rule."""
    [rule] = templates.properties("AWS::ElasticLoadBalancingV2::ListenerRule", MODEL)
    [action] = rule["Actions"]
    return {text(each["TargetGroupArn"]): each["Weight"] for each in action["ForwardConfig"]["TargetGroups"]}


def test_old_host_names_lead_to_the_door_and_no_target_group_goes(templates: Templates) -> None:
    """Red if a model is reached beside the door, or if ECS and readiness gates lose the health of targets."""
    found = weights(templates)
    door = [arn for arn in found if f"try-{STACK}" in arn]
    assert len(door) == 1
    assert found.pop(door[0]) == 1
    assert set(found.values()) == {0}
    assert len(found) == len(templates.resources("AWS::ElasticLoadBalancingV2::TargetGroup", MODEL))


@pytest.mark.thorough
def test_while_callers_are_moved_host_names_lead_to_the_models(synthesise: Synthesise) -> None:
    def moving(spec: dict[str, Any]) -> None:
        with_front_door(spec)
        spec["frontDoor"]["oldHostNames"] = {"models": {"until": "2027-01-31T00:00:00Z"}}

    found = weights(synthesise(moving))
    assert not [arn for arn in found if f"try-{STACK}" in arn]
    assert all(found.values())


def test_teams_with_principals_administer_their_keys_by_an_api_and_reach_no_table(
    synthesise: Synthesise, eks: Templates
) -> None:
    """Red if a team could change keys in the table, or had no API for its own."""
    principal = "arn:aws:iam::111122223333:role/ads"

    def with_principals(spec: dict[str, Any]) -> None:
        with_front_door(spec)
        spec["teams"][0]["principals"] = [principal]

    templates = synthesise(with_principals)
    [table] = [
        resource["Properties"]
        for name, resource in templates.by_stack["Data"]["Resources"].items()
        if name.startswith("DoorKeys")
    ]
    [replica] = table["Replicas"]
    [denial] = replica["ResourcePolicy"]["PolicyDocument"]["Statement"]
    assert denial["Effect"] == "Deny"
    assert principal in str(denial["Condition"])
    assert "DoorKeysApiAddress" in templates.by_stack[STACK]["Outputs"]
    assert "DoorKeysApiAddress" not in eks.by_stack[STACK]["Outputs"]


def priorities(templates: Templates) -> list[int]:
    return [rule["Priority"] for rule in templates.properties("AWS::ElasticLoadBalancingV2::ListenerRule")]


def test_its_rule_changes_no_other(eks: Templates, base_templates: Templates) -> None:
    [before] = priorities(base_templates)
    found = priorities(eks)
    assert before in found
    assert len(set(found)) == len(found) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [(with_front_door, with_changed_rules), (on_ecs, with_changed_rules_on_ecs)],
    ids=["EKS", "ECS"],
)
def test_other_models_and_budgets_replace_no_replica(before: Any, after: Any, synthesise: Synthesise) -> None:
    """Red if a name, a weight, a price or a budget is part of a pod, a task or a stack of a model."""
    old, new = synthesise(before), synthesise(after)
    assert watched(old) != watched(new)
    # Both templates have masks in the place of asset hashes: that of the object alone differs.
    assert old.by_stack == new.by_stack


def watched(templates: Templates) -> dict[str, Any]:
    """The object that replicas watch."""
    [file] = (templates.directory / "watched").glob("*.json")
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return document


def test_what_replicas_watch_has_rules_and_envoy_s_part(templates: Templates) -> None:
    document = watched(templates)
    assert document["policy"]["platform"] == "try"
    [cluster] = document["envoy"]["clusters"]["resources"]
    [endpoint] = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    host = endpoint["endpoint"]["address"]["socket_address"]["address"]
    assert host in ("qwen3-8b-main-door.inference.svc.cluster.local", "qwen3-8b-main.try-door.internal")
    [copied] = templates.properties("Custom::WatchedObject", STACK)
    assert copied["Key"] == "configuration.json"


def test_a_replica_reads_keys_and_writes_what_it_counts(templates: Templates) -> None:
    """Red if a replica may make, change or delete a key, delete a checkpoint, or read usage records."""
    role = "IdentityRole" if "Custom::AWSCDK-EKS-HelmChart" in str(templates.by_stack[STACK]) else "Role"
    rights = allowed(policies(templates, role))
    if role == "Role":  # of ECS: ECR and logs are those of the other role
        assert not {each for each in rights if each.startswith(("ecr:", "logs:"))}
    assert rights.keys() == {
        *("dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem"),
        *("elasticache:Connect", "firehose:PutRecordBatch"),
        *("kms:Decrypt", "kms:GenerateDataKey", "s3:GetObject", "secretsmanager:GetSecretValue"),
    }
    assert all("DoorLedgerTable" in arn for arn in rights["dynamodb:PutItem"])
    [watched_object] = rights["s3:GetObject"]
    assert watched_object.endswith("/configuration.json")
    assert len(rights["elasticache:Connect"]) == 2
    assert not [arn for arns in rights.values() for arn in arns if arn.endswith("*")]


def test_only_the_door_connects_to_the_store_and_its_user_may_little(ecs: Templates) -> None:
    rules = [rule for rule in ingress(ecs) if rule.startswith("Store of the ledger")]
    assert rules == ["Store of the ledger: tcp 6379 from Front door"]
    user = ecs.only("AWS::ElastiCache::User", STACK)
    assert user["AuthenticationMode"] == {"Type": "iam"}
    assert user["UserId"] == user["UserName"] != "default"
    words = user["AccessString"].split()
    assert words[:3] == ["on", "~door:*", "-@all"]
    assert not {"+@all", "~*", "allkeys", "nopass", "+del", "+keys", "+scan", "+flushall", "+config"} & {
        *words
    }
    cache = ecs.only("AWS::ElastiCache::ServerlessCache", STACK)
    assert (cache["Engine"], cache["CacheUsageLimits"]["DataStorage"]) == (
        "valkey",
        {"Maximum": 1, "Unit": "GB"},
    )


def test_the_load_balancer_reaches_the_door_and_the_door_the_models(ecs: Templates) -> None:
    """Red if a replica on ECS shares the security group of the models, or admits anybody else."""
    rules = [rule for rule in ingress(ecs) if "Front door" in rule]
    assert sorted(rules) == [
        f"Front door: tcp {DOOR_PORT} from Callers of the models",
        f"Front door: tcp {METRICS_PORT} from Hosts and tasks",
        f"Hosts and tasks: tcp {CALLERS_PORT} from Front door",
        "Store of the ledger: tcp 6379 from Front door",
    ]
    [group] = [
        each
        for each in ecs.properties("AWS::EC2::SecurityGroup", STACK)
        if each["GroupDescription"] == "Front door"
    ]
    assert sorted(rule["ToPort"] for rule in group["SecurityGroupEgress"]) == [443, 6379, CALLERS_PORT]
    [service] = ecs.properties("AWS::ECS::Service", STACK)
    network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
    assert network["AssignPublicIp"] == "DISABLED"
    assert [text(each) for each in network["SecurityGroups"]] == ["${Tasks0BA6A452.GroupId}"]


@pytest.mark.thorough
def test_on_ecs_it_reaches_what_receives_its_spans(synthesise: Synthesise, ecs: Templates) -> None:
    templates = synthesise(traced_on_ecs)
    rule = f"Hosts and tasks: tcp {HTTP_PORT} from Front door"
    assert rule in ingress(templates)
    assert rule not in ingress(ecs)
    [receiver] = [
        each for each in watched(templates)["envoy"]["clusters"]["resources"] if each["name"] == "traces"
    ]
    [host] = [
        each["Name"]
        for each in templates.properties("AWS::ServiceDiscovery::PrivateDnsNamespace", "Observability")
    ]
    assert f'.{host}", "port_value": {HTTP_PORT}' in json.dumps(receiver)
    assert '"traces"' not in json.dumps(watched(ecs))


def test_usage_records_are_compressed_encrypted_and_partitioned_by_day(templates: Templates) -> None:
    stream = templates.only("AWS::KinesisFirehose::DeliveryStream", STACK)
    destination = stream["ExtendedS3DestinationConfiguration"]
    assert destination["CompressionFormat"] == "GZIP"
    assert destination["Prefix"] == "usage/date=!{timestamp:yyyy-MM-dd}/"
    assert "KMSEncryptionConfig" in destination["EncryptionConfiguration"]
    assert stream["DeliveryStreamEncryptionConfigurationInput"]["KeyType"] == "CUSTOMER_MANAGED_CMK"
    rights = allowed(policies(templates, "UsageRole"))
    assert all(arn.endswith(("/usage/*", "/usage-errors/*")) for arn in rights["s3:PutObject"])
    assert not {"s3:GetObject", "s3:DeleteObject"} & rights.keys()


def test_ledger_and_records_are_compared_twice_a_day_by_what_only_reads(templates: Templates) -> None:
    """Red if the comparison may change what it compares, or would run in another time zone than budgets."""
    schedule = templates.only("AWS::Scheduler::Schedule", STACK)
    assert schedule["ScheduleExpression"] == "cron(0 4,16 * * ? *)"
    zone = schedule["ScheduleExpressionTimezone"]
    [function] = [
        each
        for each in templates.properties("AWS::Lambda::Function", STACK)
        if each["Handler"] == "door_reconciliation.handler.handle"
    ]
    variables = function["Environment"]["Variables"]
    assert variables["DOOR_TIME_ZONE"] == zone == watched(templates)["policy"]["time_zone"]
    rights = allowed(policies(templates, "ReconciliationCompareRole"))
    own = {name for name in rights if not name.startswith(("logs:", "sqs:"))}
    assert own == {"dynamodb:Scan", "s3:GetObject", "s3:ListBucket", "kms:Decrypt"}
    assert all(arn.endswith("/usage/*") for arn in rights["s3:GetObject"])


def test_alarms_watch_the_records_and_their_comparison(synthesise: Synthesise) -> None:
    """Red if a difference that nobody computes any more, or a stream that stands still, raises nothing."""

    def observed(spec: dict[str, Any]) -> None:
        with_front_door(spec)
        spec["observability"] = {}

    templates = synthesise(observed)
    alarms = {
        name.removeprefix("Usage")[:-8]: each["Properties"]
        for name, each in templates.by_stack["Monitoring"]["Resources"].items()
        if each["Type"] == "AWS::CloudWatch::Alarm" and name.startswith("Usage")
    }
    assert {
        name: (each["MetricName"], each["Statistic"], each["Period"], each["TreatMissingData"])
        for name, each in alarms.items()
    } == {
        "Differ": ("LedgerDifference", "Maximum", 43200, "ignore"),
        "NotCompared": ("LedgerDifference", "SampleCount", 86400, "breaching"),
        "NotDelivered": ("DeliveryToS3.DataFreshness", "Maximum", 300, "notBreaching"),
    }
    assert "docs/runbooks/door-slow.md" in str(templates.by_stack["Monitoring"])


def bucket(templates: Templates, prefix: str) -> Resource:
    found: list[Resource] = [
        resource
        for name, resource in templates.by_stack["Data"]["Resources"].items()
        if resource["Type"] == "AWS::S3::Bucket" and name.startswith(prefix)
    ]
    [only] = found
    return only


def test_tables_can_be_restored_and_are_not_deleted_by_chance(templates: Templates) -> None:
    tables = [
        resource
        for name, resource in templates.by_stack["Data"]["Resources"].items()
        if resource["Type"] == "AWS::DynamoDB::GlobalTable" and name.startswith("Door")
    ]
    assert len(tables) == 2
    for table in tables:
        [replica] = table["Properties"]["Replicas"]
        assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
        assert replica["DeletionProtectionEnabled"] is True
        assert table["Properties"]["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}
        assert table["DeletionPolicy"] == "Retain"
    [index] = [index for table in tables for index in table["Properties"].get("LocalSecondaryIndexes", [])]
    assert index["IndexName"] == "byChange"
    assert [each["AttributeName"] for each in index["KeySchema"]] == ["bucket", "change"]
    assert index["Projection"] == {"ProjectionType": "ALL"}


@pytest.mark.thorough
@pytest.mark.parametrize(("mode", "removal"), [("governance", "destroy"), ("compliance", "retain")])
def test_a_locked_record_of_administration_is_never_deleted_with_its_stack(
    mode: str, removal: str, synthesise: Synthesise
) -> None:
    """Red if `dataRemoval: destroy` makes CloudFormation empty a bucket that S3 does not let it empty."""

    def locked(spec: dict[str, Any]) -> None:
        with_front_door(spec)
        spec["environment"]["dataRemoval"] = removal
        spec["frontDoor"]["usage"] = {"retentionDays": 30, "objectLock": mode}

    templates = synthesise(locked)
    audit = bucket(templates, "DoorAudit")
    rule = audit["Properties"]["ObjectLockConfiguration"]["Rule"]["DefaultRetention"]
    assert rule == {"Days": 30, "Mode": mode.upper()}
    assert audit["DeletionPolicy"] == "Retain"
    usage = bucket(templates, "DoorUsage")["DeletionPolicy"]
    assert usage == ("Delete" if removal == "destroy" else "Retain")
    [expiry] = audit["Properties"]["LifecycleConfiguration"]["Rules"]
    assert expiry["ExpirationInDays"] > rule["Days"]


def test_without_a_lock_there_is_none_and_usage_is_kept_as_long_as_asked(eks: Templates) -> None:
    assert "ObjectLockConfiguration" not in bucket(eks, "DoorAudit")["Properties"]
    rules = bucket(eks, "DoorUsage")["Properties"]["LifecycleConfiguration"]["Rules"]
    kept = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "Prefix" in rule}
    assert kept == {"usage/": 400, "usage-errors/": 400, "query-results/": 7}


def test_athena_reads_records_as_they_are_written_and_counts_each_once(eks: Templates) -> None:
    """Red if a field of a record has no column, or if the view is none that Athena can read."""
    tables = {
        each["TableInput"]["Name"]: each["TableInput"] for each in eks.properties("AWS::Glue::Table", STACK)
    }
    columns = {each["Name"]: each["Type"] for each in tables["usage"]["StorageDescriptor"]["Columns"]}
    assert columns.keys() == {field.name for field in fields(UsageRecord)}
    assert (columns["cost_nano"], columns["stream"], columns["team"]) == ("bigint", "boolean", "string")
    template = tables["usage"]["Parameters"]["storage.location.template"]
    assert text(template).endswith("/usage/date=${date}/")
    original = tables["spent_by_day"]["ViewOriginalText"]
    encoded = original.removeprefix("/* Presto View: ").removesuffix(" */")
    view = json.loads(base64.b64decode(encoded))
    assert view["schema"] == "try_front_door"
    assert "row_number()" in view["originalSql"]
    shown = {each["Name"] for each in tables["spent_by_day"]["StorageDescriptor"]["Columns"]}
    assert shown == {each["name"] for each in view["columns"]} >= {"team", "project", "key", "model", "usd"}


def test_pods_wait_for_their_image_rights_and_route(eks: Templates) -> None:
    [release] = eks.charts(STACK).values()
    assert release["Properties"]["Wait"] is True
    after = " ".join(release["DependsOn"])
    for each in ("IdentityRole", "ImageStart", "RouteBinding", "WatchedObject", "LedgerCache"):
        assert each in after, each
    namespace = eks.manifest(STACK, "Namespace", charts()["front-door"].namespace)
    assert namespace["metadata"]["labels"]["elbv2.k8s.aws/pod-readiness-gate-inject"] == "enabled"
    [admitted] = [each for each in ingress(eks) if f"tcp {DOOR_PORT}" in each]
    assert admitted == f"the cluster: tcp {DOOR_PORT} from Callers of the models"


def test_tasks_find_entry_points_by_name_and_no_other_task_has_one(synthesise: Synthesise) -> None:
    """Red if Envoy would be led to workers behind a frontend, or found no entry point."""
    templates = synthesise(on_ecs)
    [name] = templates.properties("AWS::ServiceDiscovery::Service", STACK)
    assert name["Name"] == "qwen3-8b-main"
    assert name["DnsConfig"]["DnsRecords"] == [{"TTL": "5", "Type": "A"}] or name["DnsConfig"][
        "DnsRecords"
    ] == [{"TTL": 5, "Type": "A"}]
    assert name["DnsConfig"]["RoutingPolicy"] == "MULTIVALUE"
    registered = [
        bool(each.get("ServiceRegistries")) == bool(each.get("LoadBalancers"))
        for each in templates.properties("AWS::ECS::Service", MODEL)
    ]
    assert len(registered) == 2
    assert all(registered)


def test_a_task_starts_envoy_last_and_ends_it_first(ecs: Templates) -> None:
    task = ecs.only("AWS::ECS::TaskDefinition", STACK)
    containers = {each["Name"]: each for each in task["ContainerDefinitions"]}
    assert {each["ContainerName"]: each["Condition"] for each in containers["main"]["DependsOn"]} == {
        "policy": "HEALTHY",
        "certificates": "HEALTHY",
    }
    assert containers["policy"]["StopTimeout"] == 120
    for each in containers.values():
        assert each["LinuxParameters"]["Capabilities"] == {"Drop": ["ALL"]}
        assert each["User"] == "1000:1000"
    state = [
        name
        for name, each in containers.items()
        if any(mount["SourceVolume"] == "state" for mount in each["MountPoints"])
    ]
    assert state == ["policy"]


def test_replicas_follow_their_load_up_to_the_plan_s_number(synthesise: Synthesise) -> None:
    """Red if a deployment resets the number, or if more replicas than planned share an allowance."""

    def six(spec: dict[str, Any]) -> None:
        on_ecs(spec)
        spec["frontDoor"]["replicas"] = 6

    templates = synthesise(six)
    [service] = templates.properties("AWS::ECS::Service", STACK)
    assert "DesiredCount" not in service
    target = templates.only("AWS::ApplicationAutoScaling::ScalableTarget", STACK)
    assert (target["MinCapacity"], target["MaxCapacity"]) == (3, 6)
    assert watched(templates)["policy"]["replicas"] == 6
