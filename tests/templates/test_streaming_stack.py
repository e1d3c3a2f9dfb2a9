"""The stack of streaming jobs: Kafka, applications, their rights, and who reads their history."""

from __future__ import annotations

import base64
import copy
import json
from fnmatch import fnmatchcase
from typing import Any, cast

import pytest
import yaml

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.data_checks import moved_topics
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange
from inference_blueprints.report.pricing.streaming_price import ALARMS_PER_STREAM
from inference_blueprints.resources import root
from inference_blueprints.spec.source import shipped
from inference_contracts.dead_letters import redriven_name
from inference_contracts.streaming_job import STREAMING_RUNBOOKS, StreamingJobConfiguration
from tests.templates.conftest import Synthesise
from tests.templates.streaming_users import user_of
from tests.templates.support import Templates, listed, statements, text

STACK = "Streaming"
EXISTING = {
    "existing": {
        "clusterArn": "arn:aws:kafka:us-west-2:123456789012:cluster/shared/0a1b2c3d-1111-2222-3333-444455-7",
        "bootstrapServers": "b-1.shared.kafka.us-west-2.amazonaws.com:9098",
        "securityGroupId": "sg-0123456789abcdef0",
    }
}


def streaming(spec: dict[str, Any]) -> None:
    """Give the base document the shipped streaming job, and a second one of another team."""
    given = yaml.safe_load(shipped()["streaming-g6e"].read_text())["spec"]
    spec.update({key: given[key] for key in ("teams", "kafka", "streaming", "signalStore")})
    job = json.loads(json.dumps(spec["streaming"][0]))
    job.update(name="basket", team="shop", signal={"name": "basket-value"})
    job["events"]["topic"] = "carts"
    spec["streaming"].append(job)
    spec["teams"].append(
        {"name": "shop", "principals": ["arn:aws:iam::123456789012:role/Shop"], "monthlyBudgetUsd": 10}
    )
    spec["signalStore"]["signals"].append({"name": "basket-value", "team": "shop"})
    spec["signalStore"]["historyDays"] = 30
    for each in spec["streaming"]:
        each["load"]["eventsPerSecond"] = 0.2


def existing(spec: dict[str, Any]) -> None:
    streaming(spec)
    spec["kafka"] = EXISTING
    for each in spec["streaming"]:
        each["events"]["partitions"] = 12


@pytest.fixture(scope="module")
def templates(synthesise: Synthesise) -> Templates:
    return synthesise(streaming)


@pytest.fixture(scope="module")
def shared(synthesise: Synthesise) -> Templates:
    return synthesise(existing)


def rights(templates: Templates, role_words: str) -> dict[str, set[str]]:
    """Return the resources of each allowed action of the one role whose name has these words."""
    found: dict[str, set[str]] = {}
    for resource in templates.resources("AWS::IAM::Policy", STACK):
        if role_words in json.dumps(resource["Properties"]["Roles"]):
            for statement in statements(resource):
                assert statement["Effect"] == "Allow"
                for action in listed(statement["Action"]):
                    found.setdefault(action, set()).update(
                        text(each) for each in listed(statement["Resource"])
                    )
    assert found, role_words
    return found


def ends(resources: set[str]) -> set[str]:
    """Return what is after the account or bucket."""
    return {each.rsplit(":", 1)[-1].split("/", 1)[-1] for each in resources}


def kafka(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the rights in Kafka, with the last part of each resource."""
    return {
        action.removeprefix("kafka-cluster:"): {each.rsplit("/", 1)[-1] for each in resources}
        for action, resources in found.items()
        if action.startswith("kafka-cluster:")
    }


def application(templates: Templates, job: str) -> dict[str, Any]:
    [found] = [
        each
        for each in templates.properties("AWS::KinesisAnalyticsV2::Application", STACK)
        if each["ApplicationName"] == f"try-{job}"
    ]
    return found


def test_without_jobs_there_is_nothing(base_templates: Templates) -> None:
    assert STACK not in base_templates.by_stack
    assert not base_templates.resources("AWS::MSK::Cluster")


def test_clients_reach_brokers_by_tls_and_iam_only(templates: Templates) -> None:
    cluster = templates.only("AWS::MSK::Cluster", STACK)
    assert cluster["ClientAuthentication"] == {
        "Sasl": {"Iam": {"Enabled": True}, "Scram": {"Enabled": False}},
        "Unauthenticated": {"Enabled": False},
    }
    encryption = cluster["EncryptionInfo"]
    assert encryption["EncryptionInTransit"] == {"ClientBroker": "TLS", "InCluster": True}
    assert "Key" in text(encryption["EncryptionAtRest"]["DataVolumeKMSKeyId"])
    brokers = cluster["BrokerNodeGroupInfo"]
    assert len(brokers["ClientSubnets"]) == 3
    assert all("Private" in text(each) for each in brokers["ClientSubnets"])
    assert "StorageInfo" not in brokers
    assert cluster["LoggingInfo"]["BrokerLogs"]["CloudWatchLogs"]["Enabled"] is True
    [group] = [
        each
        for each in templates.properties("AWS::EC2::SecurityGroup", STACK)
        if each["GroupDescription"] == "Kafka from the VPC"
    ]
    assert [(rule["CidrIp"], rule["FromPort"]) for rule in group["SecurityGroupIngress"]] == [
        ("10.0.0.0/16", 9098)
    ]


def test_topics_are_declared_with_their_retention(templates: Templates) -> None:
    topics = {each["TopicName"]: each for each in templates.properties("AWS::MSK::Topic", STACK)}
    assert set(topics) == {"clicks", "carts", "shopper-dead-letters", "basket-dead-letters"}
    assert {each["ReplicationFactor"] for each in topics.values()} == {3}

    def days(name: str) -> float:
        settings = json.loads(base64.b64decode(topics[name]["Configs"]))
        assert set(settings) == {"retention.ms"}
        return int(settings["retention.ms"]) / 86_400_000

    assert (days("clicks"), days("shopper-dead-letters")) == (1.0, 14.0)


def test_a_cluster_that_exists_gets_the_dead_letters_topic_and_a_rule(shared: Templates) -> None:
    assert not shared.resources("AWS::MSK::Cluster")
    topics = shared.properties("AWS::MSK::Topic", STACK)
    assert {each["TopicName"] for each in topics} == {"shopper-dead-letters", "basket-dead-letters"}
    assert {each["ClusterArn"] for each in topics} == {EXISTING["existing"]["clusterArn"]}
    rules = {
        text(each["GroupId"]): each["FromPort"]
        for each in shared.properties("AWS::EC2::SecurityGroupIngress", STACK)
    }
    assert rules[EXISTING["existing"]["securityGroupId"]] == 9098
    head = EXISTING["existing"]["clusterArn"].replace(":cluster/", ":topic/")
    assert rights(shared, "JobshopperFlink")["kafka-cluster:ReadData"] == {f"{head}/clicks"}
    [document] = documents(shared, "shopper")
    assert EXISTING["existing"]["bootstrapServers"] in document
    assert not shared.resources("Custom::KafkaBrokers")


def test_a_topic_that_two_jobs_read_is_declared_once_with_enough_partitions(synthesise: Synthesise) -> None:
    """MSK refuses a second topic of the same name, also while the first of the jobs leaves the blueprint."""

    def one_topic(spec: dict[str, Any]) -> None:
        streaming(spec)
        spec["streaming"][1]["events"]["topic"] = spec["streaming"][0]["events"]["topic"]
        spec["streaming"][1]["parallelism"] = 5

    templates = synthesise(one_topic)
    topics = [each["TopicName"] for each in templates.properties("AWS::MSK::Topic", STACK)]
    assert len(topics) == len(set(topics)) == 3
    [events] = [
        name
        for name, each in templates.by_stack[STACK]["Resources"].items()
        if each["Type"] == "AWS::MSK::Topic" and "dead" not in each["Properties"]["TopicName"]
    ]
    assert templates.by_stack[STACK]["Resources"][events]["Properties"]["PartitionCount"] == 20
    starts = [
        each["DependsOn"]
        for each in templates.by_stack[STACK]["Resources"].values()
        if events in each.get("DependsOn", [])
    ]
    assert len(starts) == 2

    def first_removed(spec: dict[str, Any]) -> None:
        one_topic(spec)
        del spec["streaming"][0]

    later = synthesise(first_removed)
    change = PlatformChange(cast("Account", None), {}, templates.by_stack, later.by_stack)
    [held] = [each for each in moved_topics(change) if isinstance(each, Held)]
    step = copy.deepcopy(later.by_stack[STACK])
    held.edit(step)
    assert (
        step["Resources"][events]["Properties"]
        == templates.by_stack[STACK]["Resources"][events]["Properties"]
    )
    assert any(events in each.get("DependsOn", []) for each in step["Resources"].values())
    known = step["Resources"].keys() | step.get("Parameters", {}).keys()
    dependencies = {name for each in step["Resources"].values() for name in listed(each.get("DependsOn", []))}
    assert dependencies <= known


def documents(templates: Templates, job: str) -> list[str]:
    return [
        text(each["Document"])
        for each in templates.properties("Custom::JobConfiguration", STACK)
        if each["Prefix"].endswith(f"/{job}/")
    ]


def divided(spec: dict[str, Any]) -> None:
    """Divide the first job among two applications, and let it read a second topic."""
    streaming(spec)
    spec["streaming"][0].update(shards=2)
    spec["streaming"][0]["events"]["moreTopics"] = ["taps"]


def test_shards_are_applications_that_divide_the_partitions(
    synthesise: Synthesise, templates: Templates
) -> None:
    """With one name for both, AWS refuses the second one; with one configuration, both read everything."""
    made = synthesise(divided)
    names = {
        each["Properties"]["ApplicationName"]
        for each in made.resources("AWS::KinesisAnalyticsV2::Application", STACK)
    }
    [platform] = {name.removesuffix("-basket") for name in names if name.endswith("-basket")}
    assert names == {f"{platform}-{job}" for job in ("shopper-1-of-2", "shopper-2-of-2", "basket")}
    made_documents = [
        json.loads(text(each["Document"])) for each in made.properties("Custom::JobConfiguration", STACK)
    ]
    shards = [each["kafka"]["shard"] for each in made_documents if each["name"] == "shopper"]
    assert sorted(each["index"] for each in shards) == [0, 1]
    assert {each["count"] for each in shards} == {2}
    assert {tuple(each["kafka"].get("moreTopics", ())) for each in made_documents} == {("taps",), ()}
    topics = {each["Properties"]["TopicName"] for each in made.resources("AWS::MSK::Topic", STACK)}
    assert topics == {"clicks", "taps", "carts", "shopper-dead-letters", "basket-dead-letters"}
    assert len(made.resources("AWS::CloudWatch::Alarm", STACK)) == 3 * ALARMS_PER_STREAM
    readers = [
        each
        for each in made.resources("AWS::IAM::Policy", STACK)
        if "kafka-cluster:AlterGroup" in json.dumps(each) and "/taps" in json.dumps(each)
    ]
    assert len(readers) == 2
    # A job without shards keeps its logical IDs.
    kept = {name for name in templates.by_stack[STACK]["Resources"] if "Jobbasket" in name}
    assert kept <= made.by_stack[STACK]["Resources"].keys()


def test_a_job_finds_its_configuration(templates: Templates) -> None:
    [document] = documents(templates, "shopper")
    assert document.isascii()
    job = StreamingJobConfiguration.from_json(document)
    assert (job.kafka.topic, job.kafka.group, job.kafka.authentication) == ("clicks", "shopper", "iam")
    assert "Servers" in job.kafka.bootstrap_servers
    assert job.endpoint.url == "http://qwen3-8b.try.internal"
    store, cache = job.signal.store, templates.only("AWS::ElastiCache::ServerlessCache", "Stores")
    assert (store.tls, store.cluster, store.authentication) == (True, True, "iam")
    assert store.cache_name == cache["ServerlessCacheName"]
    assert store.user == user_of(templates, "shopper-intent")
    assert job.history.uri.endswith("/streaming-history/shopper")
    groups = application(templates, "shopper")["ApplicationConfiguration"]["EnvironmentProperties"]
    [group] = groups["PropertyGroups"]
    assert group["PropertyGroupId"] == "job"
    assert "Address" in text(group["PropertyMap"]["configuration"])


def test_jobs_scale_keep_snapshots_and_go_back_if_a_change_fails(templates: Templates) -> None:
    found = application(templates, "shopper")
    assert found["RuntimeEnvironment"] == "FLINK-2_3"
    configuration = found["ApplicationConfiguration"]
    assert configuration["ApplicationSnapshotConfiguration"] == {"SnapshotsEnabled": True}
    assert configuration["ApplicationSystemRollbackConfiguration"] == {"RollbackEnabled": True}
    flink = configuration["FlinkApplicationConfiguration"]
    assert flink["ParallelismConfiguration"]["AutoScalingEnabled"] is True
    assert flink["CheckpointConfiguration"]["CheckpointingEnabled"] is True
    # With the kind DEFAULT, AWS ignores the values.
    assert {each["ConfigurationType"] for each in flink.values()} == {"CUSTOM"}
    [vpc] = configuration["VpcConfigurations"]
    assert all("Private" in text(each) for each in vpc["SubnetIds"])


def test_an_application_follows_its_program_and_starts_after_its_topics(templates: Templates) -> None:
    resources = templates.by_stack[STACK]["Resources"]
    kinds = {name: each["Type"] for name, each in resources.items()}
    [created] = [
        each
        for each in templates.resources("AWS::KinesisAnalyticsV2::Application", STACK)
        if each["Properties"]["ApplicationName"] == "try-shopper"
    ]
    assert "Custom::ImageBuild" in {kinds[name] for name in created["DependsOn"]}
    [build] = templates.properties("Custom::ImageBuild", STACK)
    assert build["Wait"] == "true"
    content = created["Properties"]["ApplicationConfiguration"]["ApplicationCodeConfiguration"]
    assert content["CodeContent"]["S3ContentLocation"]["FileKey"] == f"streaming-programs/{build['Tag']}.jar"
    [started] = [
        each
        for each in templates.resources("Custom::StartedApplication", STACK)
        if each["Properties"]["Application"] == "try-shopper"
    ]
    waits = [kinds[name] for name in started["DependsOn"]]
    assert waits.count("AWS::MSK::Topic") == 2
    assert "AWS::KinesisAnalyticsV2::Application" in waits
    assert "AWS::KinesisAnalyticsV2::ApplicationCloudWatchLoggingOption" in waits


def test_only_the_application_itself_takes_its_role(templates: Templates) -> None:
    [role] = [
        each
        for each in templates.properties("AWS::IAM::Role", STACK)
        if "kinesisanalytics" in json.dumps(each) and each["Path"].endswith("/shopper/")
    ]
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::Join"][1][-1].endswith(
        ":application/try-shopper"
    )
    assert "aws:SourceAccount" in statement["Condition"]["StringEquals"]


def test_a_job_reaches_its_own_topics_group_signals_and_objects_only(templates: Templates) -> None:
    found = rights(templates, "JobshopperFlink")
    assert kafka(found) == {
        "Connect": {"${KafkaCluster21A1BE89.Arn}"},
        "WriteDataIdempotently": {"${KafkaCluster21A1BE89.Arn}"},
        "DescribeTopic": {"clicks", "shopper-dead-letters"},
        "ReadData": {"clicks"},
        "WriteData": {"shopper-dead-letters"},
        "AlterGroup": {"shopper"},
        "DescribeGroup": {"shopper"},
    }
    assert all(":group/try-events/" in each for each in found["kafka-cluster:AlterGroup"])
    assert all(":topic/try-events/" in each for each in found["kafka-cluster:ReadData"])
    assert ends(found["s3:PutObject"]) == {"streaming-history/shopper/*"}
    assert ends(found["s3:GetObject"]) == {
        "streaming-configuration/shopper/*",
        "streaming-history/shopper/*",
        "streaming-programs/*",
    }
    cache = templates.only("AWS::ElastiCache::ServerlessCache", "Stores")["ServerlessCacheName"]
    assert {each.rsplit(":", 1)[-1] for each in found["elasticache:Connect"]} == {
        cache,
        user_of(templates, "shopper-intent"),
    }
    assert {action.split(":")[0] for action in found} == {
        "ec2",
        "elasticache",
        "kafka-cluster",
        "kms",
        "logs",
        "s3",
    }


def test_network_interfaces_are_made_in_the_vpc_s_private_subnets_only(templates: Templates) -> None:
    found = rights(templates, "JobshopperFlink")
    subnets = {each for each in found["ec2:CreateNetworkInterface"] if ":subnet/" in each}
    assert len(subnets) == 3
    assert all("Private" in each for each in subnets)
    [policy] = [
        each
        for each in templates.resources("AWS::IAM::Policy", STACK)
        if "JobshopperFlink" in json.dumps(each["Properties"]["Roles"])
    ]
    for statement in statements(policy):
        if "ec2:DeleteNetworkInterface" in listed(statement["Action"]):
            assert "ec2:Vpc" in statement["Condition"]["ArnEquals"]


def test_the_probe_writes_events_and_reads_signals_only(templates: Templates) -> None:
    found = rights(templates, "JobshopperToolsProbe")
    assert kafka(found) == {
        "Connect": {"${KafkaCluster21A1BE89.Arn}"},
        "DescribeTopic": {"clicks"},
        "WriteData": {"clicks"},
    }
    assert any(each.endswith("-reader") for each in found["elasticache:Connect"])
    assert not any(each.endswith("-writer") for each in found["elasticache:Connect"])
    assert not {action for action in found if action.startswith("s3:")} - {"s3:GetObject"}


def test_the_redrive_reads_dead_letters_and_writes_signals_and_events(templates: Templates) -> None:
    found = rights(templates, "JobshopperToolsRedrive")
    assert kafka(found) == {
        "Connect": {"${KafkaCluster21A1BE89.Arn}"},
        "DescribeTopic": {"clicks", "shopper-dead-letters"},
        "ReadData": {"shopper-dead-letters"},
        "WriteData": {"clicks"},
    }
    users = {each.rsplit(":", 1)[-1] for each in found["elasticache:Connect"] if ":user:" in each}
    assert users == {user_of(templates, "shopper-intent")}
    assert ends(found["s3:GetObject"]) == {"streaming-configuration/shopper/*"}
    [key] = ends(found["s3:PutObject"])
    assert fnmatchcase(f"streaming-history/shopper/{redriven_name('s', 1_795_424_400_000_007)}", key)
    assert not fnmatchcase("streaming-history/shopper/date=2026-11-23/hour=09/part-1.jsonl", key)
    assert not fnmatchcase(f"streaming-history/basket/{redriven_name('s', 7)}", key)


def test_the_code_of_tools_may_not_make_network_interfaces(templates: Templates) -> None:
    policies = templates.properties("AWS::IAM::ManagedPolicy", STACK)
    assert len(policies) == 4
    for each in policies:
        [statement] = each["PolicyDocument"]["Statement"]
        assert statement["Effect"] == "Deny"
        assert "lambda:SourceFunctionArn" in statement["Condition"]["ArnEquals"]


def test_the_deployment_s_steps_may_do_these_steps_only(templates: Templates) -> None:
    found = rights(templates, "SetupStepsRole")
    assert {action.split(":")[0] for action in found} == {"kafka", "kinesisanalytics", "kms", "logs", "s3"}
    assert ends(found["s3:PutObject"]) == {"streaming-configuration/*"}
    assert {each.rsplit("/", 1)[-1] for each in found["kinesisanalytics:StartApplication"]} == {
        "try-shopper",
        "try-basket",
    }
    assert found["kafka:GetBootstrapBrokers"] == {"${KafkaCluster21A1BE89.Arn}"}


def test_no_team_reaches_the_history_of_another_s_jobs(templates: Templates) -> None:
    denials = {
        ends({text(statement["Resource"])}).pop(): statement
        for resource in templates.resources("AWS::S3::BucketPolicy", "Data")
        for statement in statements(resource)
        if statement["Effect"] == "Deny" and "streaming-history" in text(statement["Resource"])
    }
    assert set(denials) == {"streaming-history/shopper/*", "streaming-history/basket/*"}
    shopper = [
        text(each)
        for each in denials["streaming-history/shopper/*"]["Condition"]["ArnNotLike"]["aws:PrincipalArn"]
    ]
    assert "arn:aws:iam::123456789012:role/Ads" in shopper
    assert not any("Shop" in each for each in shopper)
    assert any(each.endswith(":role/inference-blueprints/try/streaming/shopper/*") for each in shopper)
    assert {listed(each["Action"])[0] for each in denials.values()} == {"s3:*"}


def test_history_goes_by_itself(templates: Templates) -> None:
    rules = [
        rule
        for resource in templates.properties("AWS::S3::Bucket", "Data")
        for rule in resource["LifecycleConfiguration"]["Rules"]
        if rule.get("Prefix") == "streaming-history/"
    ]
    assert [rule["ExpirationInDays"] for rule in rules] == [30]


def test_jobs_reach_brokers_models_signals_and_aws_only(templates: Templates) -> None:
    [group] = [
        each
        for each in templates.properties("AWS::EC2::SecurityGroup", STACK)
        if each["GroupDescription"] == "Streaming jobs"
    ]
    assert "SecurityGroupIngress" not in group
    egress = {(rule["CidrIp"], rule["FromPort"]) for rule in group["SecurityGroupEgress"]}
    vpc = "10.0.0.0/16"
    assert egress == {(vpc, 9098), (vpc, 6379), (vpc, 80), ("0.0.0.0/0", 443)}


def test_each_alarm_names_a_runbook_that_exists(templates: Templates) -> None:
    alarms = templates.properties("AWS::CloudWatch::Alarm", STACK)
    assert len(alarms) == 2 * ALARMS_PER_STREAM
    named = {each["AlarmDescription"].rsplit("Runbook: ", 1)[1] for each in alarms}
    assert named == set(STREAMING_RUNBOOKS)
    assert all((root() / each).is_file() for each in named)
    assert all(each["AlarmActions"] for each in alarms)


def test_logs_are_kept_for_a_time_and_encrypted(templates: Templates) -> None:
    logs = templates.properties("AWS::Logs::LogGroup", STACK)
    assert all(each["RetentionInDays"] for each in logs)
    named = {each["LogGroupName"]: each for each in logs if "LogGroupName" in each}
    assert {"/aws/kinesis-analytics/try-shopper", "/aws/vendedlogs/msk/try-events"} <= set(named)
    assert all("KmsKeyId" in each for each in named.values())
