"""Batch: what its functions and workers may do, and what starts and ends a job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from batch.contracts.generated_image import image_tokens
from batch.worker import shard_holder
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.batch_keys import jobs_of_model
from stacks.batch_stack import queue_configuration
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements, text

RATES = {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4}
TEAM = {
    "name": "ads",
    "principals": ["arn:aws:iam::111122223333:role/Ads"],
    "monthlyBudgetUsd": 1000,
    "dataPrefixes": ["s3://acme-ads/pictures/"],
}
QUEUES = [
    {"name": "nightly", "model": "qwen3-8b", "rates": RATES},
    {"name": "urgent", "model": "qwen3-8b", "rates": RATES, "priority": 90, "deadlineHours": 1},
]


SCHEDULE = {
    "name": "every-morning",
    "queue": "nightly",
    "team": "ads",
    "cron": "0 6 * * ? *",
    "manifest": {
        "inputs": ["s3://acme-ads/pictures/{date}.jsonl"],
        "template": {"text": "What is {{ name }}?", "parameters": {"max_tokens": 9}},
    },
}


def with_batch(spec: dict[str, Any]) -> None:
    spec.update(teams=[TEAM], batch={"queues": QUEUES, "schedules": [SCHEDULE]})


@pytest.fixture(scope="module")
def batch(synthesise: Synthesise) -> Templates:
    return synthesise(with_batch)


def functions(templates: Templates) -> dict[str, dict[str, Any]]:
    return {each["Handler"]: each for each in templates.properties("AWS::Lambda::Function", "Batch")}


def definition(templates: Templates) -> dict[str, Any]:
    machine = templates.only("AWS::StepFunctions::StateMachine", "Batch")
    found: dict[str, Any] = json.loads(text(machine["DefinitionString"]))
    return found


def states(machine: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Iterate over all states, those of maps too."""
    for name, state in machine["States"].items():
        yield name, state
        if state["Type"] == "Map":
            yield from states(state["ItemProcessor"])


def test_without_the_section_there_is_nothing_of_it(base_templates: Templates) -> None:
    assert not [name for name in base_templates.by_stack if "Batch" in name]
    assert not base_templates.resources("AWS::DynamoDB::GlobalTable", "Data")


def test_teams_alone_build_nothing(synthesise: Synthesise, base_templates: Templates) -> None:
    templates = synthesise(lambda spec: spec.update(teams=[TEAM]))
    assert set(templates.by_stack) == set(base_templates.by_stack)


def test_functions_know_queues_and_teams(batch: Templates) -> None:
    environment = functions(batch)["batch.api.handler.handle"]["Environment"]["Variables"]
    configuration = batch.asset_document(environment["BATCH_CONFIGURATION"])
    assert configuration["platform"] == "try"
    assert configuration["teams"] == [{**TEAM, "maxPriority": 100, "maxPlacesPercent": 100}]
    [nightly, urgent] = configuration["queues"]
    # The blueprint's peak is of both kinds at once; each alone goes twice as fast.
    assert nightly["capacity"]["inputTokensPerSecond"] == 2 * 2 * 3000
    assert nightly["capacity"]["outputTokensPerSecond"] == 2 * 2 * 200
    assert nightly["capacity"]["places"] == 4 * 4
    assert nightly["limits"]["requestTokens"] >= 3200
    assert "imageSteps" not in nightly
    assert (urgent["priority"], urgent["deadlineHours"], urgent["keepDays"]) == (90, 1, 30)


def test_functions_know_the_queues_of_models_that_make_images() -> None:
    blueprint = load_blueprint("image-generation").blueprint
    batch = blueprint.spec.batch
    assert batch is not None
    known = queue_configuration(blueprint, batch, batch.queues[0], build_plan(blueprint)).to_document()
    assert known["imageSteps"] == 9
    # One request per second, of one image with a token per 16 by 16 pixels.
    assert known["capacity"]["outputTokensPerSecond"] == image_tokens("1024x1024") == 4096
    assert known["capacity"]["inputTokensPerSecond"] == 0


def test_functions_know_the_second_name_of_a_model() -> None:
    document = load_blueprint("batch-g6e").blueprint.model_dump(by_alias=True, exclude_unset=True)
    model = document["spec"]["models"][0]
    for public in (None, "Qwen/Qwen3-8B"):
        model["publicName"] = public
        blueprint = Blueprint.model_validate(document)
        batch = blueprint.spec.batch
        assert batch is not None
        known = queue_configuration(blueprint, batch, batch.queues[0], build_plan(blueprint))
        assert known.model_names == (model["name"], *([public] if public else []))
        assert known.to_document().get("publicName") == public


def test_the_machine_reads_the_shards_of_the_attempt(batch: Templates) -> None:
    expression = definition(batch)["States"]["ReadInput"]["Assign"]["shardsKey"]
    assert expression == (
        "{% 'jobs/' & $states.input.job & ($states.input.attempt > 1 "
        "? '/undone-' & $states.input.attempt & '.jsonl' : '/shards.jsonl') %}"
    )


def test_what_workers_call_hopeless_is_tried_once_more(batch: Templates) -> None:
    """Constructs cannot import what they deploy."""
    work = definition(batch)["States"]["Shards"]["ItemProcessor"]["States"]["RunShard"]
    [hopeless] = [each for each in work["Retry"] if "MissingObjectError" in each["ErrorEquals"]]
    assert set(hopeless["ErrorEquals"]) == {error.__name__ for error in shard_holder.PERMANENT_ERRORS}
    assert hopeless["MaxAttempts"] == 1


def test_every_state_leads_somewhere_and_only_children_wait_for_workers(batch: Templates) -> None:
    machine = definition(batch)
    names = set(machine["States"])
    for name, state in machine["States"].items():
        following = {state.get("Next"), state.get("Default"), *(c["Next"] for c in state.get("Choices", ()))}
        assert following - {None} <= names, name
        assert following - {None} or state["Type"] == "Succeed", name
    waiting = {name for name, state in states(machine) if "waitForTaskToken" in state.get("Resource", "")}
    assert waiting == {"Ask", "RunShard"}


def test_functions_of_the_machine_do_not_know_it(batch: Templates) -> None:
    """Else the machine and they would wait for each other to be made."""
    for handler, properties in functions(batch).items():
        if handler.startswith(("batch.preparation", "batch.completion")) and not handler.endswith("close"):
            assert "BATCH_STATE_MACHINE_ARN" not in properties["Environment"]["Variables"], handler


@pytest.mark.parametrize("stack", ["Batch"])
def test_no_right_is_of_everything(batch: Templates, stack: str) -> None:
    allowed = {"ecr:GetAuthorizationToken", "logs:CreateLogDelivery"}
    found = [
        statement
        for kind in ("AWS::IAM::Policy", "AWS::IAM::Role", "AWS::IAM::ManagedPolicy")
        for resource in batch.resources(kind, stack)
        for statement in statements(resource)
    ]
    assert len(found) > 20
    for statement in found:
        assert "*" not in listed(statement["Action"])
        if "*" in listed(statement["Resource"]):
            assert set(listed(statement["Action"])) & allowed, statement


def test_workers_may_read_what_teams_name_and_write_below_jobs_alone(batch: Templates) -> None:
    roles = batch.properties("AWS::IAM::Role", "Batch")
    [worker] = [
        each
        for each in roles
        if "pods.eks.amazonaws.com" in json.dumps(each) and "sqs:ReceiveMessage" in json.dumps(each)
    ]
    document = worker["Policies"][0]["PolicyDocument"]["Statement"]
    by_action = {action: each["Resource"] for each in document for action in listed(each["Action"])}
    written = [text(each).partition("/")[2] for each in listed(by_action["s3:PutObject"])]
    assert written == [f"jobs/{each}/*" for each in jobs_of_model("qwen3-8b")]
    assert "ProgressTableName" in json.dumps(by_action["dynamodb:PutItem"])
    assert {action for action in by_action if action.startswith("dynamodb:")} == {"dynamodb:PutItem"}
    assert set(by_action) >= {"sqs:ReceiveMessage", "states:SendTaskHeartbeat", "s3:GetObject"}
    assert "s3:DeleteObject" not in by_action
    reads = [each for each in document if listed(each["Action"]) == ["s3:GetObject"]]
    assert [text(value) for each in reads for value in each["Resource"]] == [
        "arn:aws:s3:::acme-ads/pictures/*"
    ]


def test_the_api_is_inside_the_vpc_and_never_open(batch: Templates) -> None:
    api = batch.only("AWS::ApiGateway::RestApi", "Batch")
    assert api["EndpointConfiguration"]["Types"] == ["PRIVATE"]
    methods = batch.properties("AWS::ApiGateway::Method", "Batch")
    assert {each["AuthorizationType"] for each in methods} == {"CUSTOM", "AWS_IAM"}
    [statement] = api["Policy"]["Statement"]
    assert "aws:SourceVpce" in statement["Condition"]["StringEquals"]


def test_ends_of_executions_manifests_and_jobs_call_their_functions(batch: Templates) -> None:
    patterns = [each.get("EventPattern", {}) for each in batch.properties("AWS::Events::Rule", "Batch")]
    by_source = {pattern["source"][0]: pattern for pattern in patterns if pattern}
    assert set(by_source) == {"aws.s3", "aws.states", "inference-blueprints.batch"}
    assert by_source["aws.states"]["detail"]["status"] == ["ABORTED", "FAILED", "TIMED_OUT"]
    prefixes = by_source["aws.s3"]["detail"]["object"]["key"]
    assert prefixes == [{"prefix": "nightly/"}, {"prefix": "urgent/"}]


def test_shards_that_end_every_worker_are_put_aside(batch: Templates) -> None:
    queues = batch.properties("AWS::SQS::Queue", "Batch")
    # The others are the dead-letter queues of shards and of events.
    assert sorted("RedrivePolicy" in each for each in queues) == [False, False, True]


def test_an_event_that_no_function_takes_is_kept(batch: Templates) -> None:
    """Rules, schedules, and functions whose callers do not wait have a dead-letter queue, and may use it."""
    resources = batch.by_stack["Batch"]["Resources"]
    (queue,) = (
        name
        for name, each in resources.items()
        if each["Type"] == "AWS::SQS::Queue" and "UndeliveredEvents" in name
    )
    arn = {"Fn::GetAtt": [queue, "Arn"]}
    for rule in batch.properties("AWS::Events::Rule", "Batch"):
        assert [each["DeadLetterConfig"]["Arn"] for each in rule["Targets"]] == [arn]
    schedule = batch.only("AWS::Scheduler::Schedule", "Batch")
    assert schedule["Target"]["DeadLetterConfig"]["Arn"] == arn
    functions = {
        each["Handler"].rsplit(".", 1)[-1]: each
        for each in batch.properties("AWS::Lambda::Function", "Batch")
        if "DeadLetterConfig" in each
    }
    assert set(functions) == {"schedule", "close", "handle_object", "handle_schedule"}
    senders = {
        json.dumps(policy["Roles"])
        for policy in batch.properties("AWS::IAM::Policy", "Batch")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "sqs:SendMessage" and statement["Resource"] == arn
    }
    assert len(senders) == len(functions) + 1, "and the role of schedules"


def test_what_is_kept_is_kept(batch: Templates) -> None:
    tables = {
        resource["Properties"]["KeySchema"][0]["AttributeName"]: resource
        for resource in batch.resources("AWS::DynamoDB::GlobalTable", "Data")
    }
    assert set(tables) == {"id", "job"}
    properties = tables["id"]
    assert properties["DeletionPolicy"] == "Retain"
    assert properties["Properties"]["Replicas"][0]["DeletionProtectionEnabled"]


def test_a_schedule_makes_the_job_of_its_manifest(batch: Templates) -> None:
    schedule = batch.only("AWS::Scheduler::Schedule", "Batch")
    assert schedule["ScheduleExpression"] == "cron(0 6 * * ? *)"
    given = json.loads(text(schedule["Target"]["Input"]))
    assert given == {
        "schedule": "<aws.scheduler.schedule-arn>",
        "time": "<aws.scheduler.scheduled-time>",
        "queue": "nightly",
        "team": "ads",
        "manifest": SCHEDULE["manifest"],
    }


def test_a_team_writes_manifests_below_its_own_prefixes_alone(batch: Templates) -> None:
    policies = batch.properties("AWS::S3::BucketPolicy", "Data")
    [puts] = [
        statement
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
        and "s3:PutObject" in listed(statement["Action"])
        and "ads" in str(statement)
    ]
    assert puts["Principal"] == {"AWS": "arn:aws:iam::111122223333:role/Ads"}
    keys = [text(each).split("/", 1)[1] for each in puts["Resource"]]
    assert keys == ["nightly/ads/*", "urgent/ads/*"]


def test_what_api_gateway_answers_itself_has_the_shape_of_the_api(batch: Templates) -> None:
    responses = batch.properties("AWS::ApiGateway::GatewayResponse", "Batch")
    assert {"ACCESS_DENIED", "DEFAULT_4XX", "UNAUTHORIZED"} <= {each["ResponseType"] for each in responses}
    for each in responses:
        body = json.loads(each["ResponseTemplates"]["application/json"])
        assert set(body["error"]) == {"message", "type", "param", "code"}


def test_the_machine_starts_looks_at_and_stops_its_own_children_alone(batch: Templates) -> None:
    """What a distributed map needs (AWS Step Functions, Creating IAM policies for state machines)."""
    [policy] = batch.properties("AWS::IAM::ManagedPolicy", "Batch")
    rights = {
        action: text(each["Resource"])
        for each in policy["PolicyDocument"]["Statement"]
        for action in listed(each["Action"])
    }
    assert set(rights) == {"states:StartExecution", "states:DescribeExecution", "states:StopExecution"}
    assert all(":execution:" in rights[action] for action in rights.keys() - {"states:StartExecution"})
    assert "*" not in rights["states:StartExecution"]


def test_pyarrow_comes_where_it_is_needed_as_a_layer_that_aws_publishes(batch: Templates) -> None:
    layered = {name: each["Layers"] for name, each in functions(batch).items() if "Layers" in each}
    assert set(layered) == {"batch.preparation.handlers.segment", "batch.preparation.handlers.check"}
    [[layer]] = {tuple(layers) for layers in layered.values()}
    assert re.fullmatch(
        r"arn:aws:lambda:us-west-2:336392948345:layer:AWSSDKPandas-Python314-Arm64:\d+", layer
    )
    for name in layered:
        # The layer's Python and processor are the function's.
        function = functions(batch)[name]
        assert (function["Runtime"], function["Architectures"]) == ("python3.14", ["arm64"])
