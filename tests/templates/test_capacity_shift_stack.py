"""The capacity shift in the stack of operations, and the places of batch that follow it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_constructs.operations.eks_controlled_cluster import shift_rules
from inference_contracts import batch_names, operations_names, shift_names
from inference_contracts.operations_names import OPERATIONS_RUNBOOKS
from inference_contracts.shift_names import ShiftConfiguration
from tests.templates.conftest import BASE, Synthesise
from tests.templates.support import Templates, listed, statements, text

STACK = "Operations"
GROUP = operations_names.SHIFT_GROUP


def shifting(action: str) -> Any:
    """Return a change that lends batch what the elastic model leaves."""

    def change(spec: dict[str, Any]) -> None:
        model = spec["models"][0]
        workers = model["deployments"][0]["aggregated"]
        workers |= {"replicas": {"min": 2, "max": 3}, "scaledBy": {"load": {}}}
        spec["pools"][0]["nodes"] = {"max": 5}
        spec["observability"] = {}
        spec["queueing"] = {"kueue": {}}
        spec["capacityShift"] = {"action": action}
        spec["teams"] = [
            {"name": "ads", "principals": ["arn:aws:iam::111122223333:role/ads"], "monthlyBudgetUsd": 100}
        ]
        rates = {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 1}
        spec["batch"] = {"queues": [{"name": "nightly", "model": model["name"], "rates": rates}]}

    return change


@pytest.fixture(scope="module")
def lending(synthesise: Synthesise) -> Templates:
    return synthesise(shifting("shift"))


@pytest.fixture(scope="module")
def watching(synthesise: Synthesise) -> Templates:
    return synthesise(shifting("observe"))


def rules(templates: Templates) -> dict[str, tuple[list[str], list[str]]]:
    """Return the names and the verbs by kind of the role and resource."""
    return {
        f"{kind} {rule['apiGroups'][0]}/{resource}": (rule.get("resourceNames", []), rule["verbs"])
        for kind in ("ClusterRole", "Role")
        for rule in templates.manifest(STACK, kind, GROUP)["rules"]
        for resource in rule["resources"]
    }


def policy(templates: Templates) -> list[dict[str, Any]]:
    function = templates.only("AWS::Lambda::Function", STACK)
    role = function["Role"]["Fn::GetAtt"][0]
    (found,) = (
        each
        for each in templates.resources("AWS::IAM::Policy", STACK)
        if each["Properties"]["Roles"] == [{"Ref": role}]
    )
    return list(statements(found))


def scheduler_environment(templates: Templates) -> dict[str, Any]:
    (found,) = (
        each["Environment"]["Variables"]
        for each in templates.properties("AWS::Lambda::Function", "Batch")
        if each["Handler"] == "batch.scheduling.handlers.schedule"
    )
    return dict(found)


def worker_environment(templates: Templates) -> dict[str, Any]:
    """Return the environment of the workers of batch, from the values of their release."""
    release = templates.charts("Batch")[f"{BASE['spec']['models'][0]['name']}.batch"]
    parts = release["Properties"]["Values"]["Fn::Join"][1]
    values = "".join(part if isinstance(part, str) else json.dumps(text(part))[1:-1] for part in parts)
    return dict(json.loads(values)["environment"])


def configuration() -> ShiftConfiguration:
    document = json.loads(json.dumps(dict(BASE)))
    shifting("shift")(document["spec"])
    blueprint = parse_blueprint(yaml.safe_dump(document), "shift.yaml").blueprint
    found = shift_configuration_of(blueprint, build_plan(blueprint))
    assert found is not None
    return found


def test_the_shift_may_patch_its_own_objects_and_nothing_else(lending: Templates) -> None:
    name = configuration().workers[0].name
    assert rules(lending) == {
        "ClusterRole keda.sh/scaledobjects": ([name], ["patch"]),
        "ClusterRole kueue.x-k8s.io/clusterqueues": (["l40s"], ["get", "patch"]),
        "Role keda.sh/scaledobjects": ([], ["list"]),
        "Role autoscaling/horizontalpodautoscalers": ([], ["list"]),
    }


def test_a_shift_that_observes_changes_nothing_anywhere(watching: Templates) -> None:
    assert {verb for _, verbs in rules(watching).values() for verb in verbs} == {"get", "list"}
    writes = [each for each in policy(watching) if "dynamodb:PutItem" in listed(each["Action"])]
    assert len(writes) == 1, "only the state of the controllers"
    assert batch_names.CEILINGS not in scheduler_environment(watching)


def test_the_shift_writes_ceilings_of_batch_and_none_of_its_jobs(lending: Templates) -> None:
    (ceilings,) = (
        each for each in policy(lending) if each.get("Condition", {}).get("ForAllValues:StringLike")
    )
    assert listed(ceilings["Action"]) == ["dynamodb:PutItem"]
    assert ceilings["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{shift_names.CEILING_PREFIX}*"]}
    }


def test_the_shift_has_no_permission_beyond_its_work(lending: Templates, watching: Templates) -> None:
    def allowed(templates: Templates) -> set[str]:
        return {
            action
            for each in policy(templates)
            if each["Effect"] == "Allow" and each["Resource"] == "*"
            for action in listed(each["Action"])
            if not action.startswith("ec2:")
        }

    assert allowed(lending) == allowed(watching) == {"cloudwatch:GetMetricData", "cloudwatch:ListMetrics"}


def test_the_function_knows_what_it_moves_and_ends_before_the_next_run(lending: Templates) -> None:
    function = lending.only("AWS::Lambda::Function", STACK)
    variables = function["Environment"]["Variables"]
    assert variables[shift_names.SHIFT_CONFIGURATION] == "shift.json"
    assert variables[shift_names.SHIFT_BATCH_TABLE]
    assert function["Timeout"] < 60


def test_without_queues_for_jobs_there_is_no_rule_about_them() -> None:
    assert [rule["apiGroups"] for rule in shift_rules(["chat"], [], shifts=True)] == [["keda.sh"]]
    assert shift_rules(["chat"], [], shifts=False) == []


def test_batch_reads_the_ceilings_of_the_elastic_models(lending: Templates) -> None:
    assert scheduler_environment(lending)[batch_names.CEILINGS] == BASE["spec"]["models"][0]["name"]


def test_a_worker_of_batch_reads_the_ceiling_of_its_model_and_nothing_else(
    lending: Templates, watching: Templates
) -> None:
    name = batch_names.CEILINGS_TABLE
    assert name not in worker_environment(watching)
    assert worker_environment(lending)[name] == text(scheduler_environment(lending)[batch_names.TABLE])
    (ceiling,) = (
        each
        for role in lending.properties("AWS::IAM::Role", "Batch")
        for inline in role.get("Policies", [])
        for each in inline["PolicyDocument"]["Statement"]
        if "dynamodb:GetItem" in listed(each["Action"])
    )
    model = BASE["spec"]["models"][0]["name"]
    assert ceiling["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [shift_names.ceiling_identifier(model)]}
    }


def test_the_configuration_is_the_plans_and_survives_its_document() -> None:
    found = configuration()
    assert ShiftConfiguration.from_json(found.as_json()) == found
    (workers,), (queue,) = found.workers, found.queues
    assert (workers.least, workers.most, workers.role) == (2, 3, "worker")
    assert workers.capacity > 1
    assert queue.accelerators == queue.quota + 3 * workers.accelerators
    assert found.batch_places == {workers.model: 16}


def test_names_are_those_of_the_rendered_scaled_objects(lending: Templates) -> None:
    (values,) = (
        json.loads(text)
        for chart in lending.charts(f"Model-{configuration().workers[0].model}").values()
        for text in [json.dumps(chart["Properties"])]
    )
    assert configuration().workers[0].release in json.dumps(values)


def test_each_alarm_has_a_runbook_and_a_stop_is_noticed(lending: Templates) -> None:
    alarms = lending.properties("AWS::CloudWatch::Alarm", STACK)
    metrics = {each["MetricName"]: each for each in alarms}
    assert {
        operations_names.RUNS,
        shift_names.SHIFT_FAILURES,
        shift_names.SHIFT_UNMEASURED,
    } <= metrics.keys()
    assert metrics[operations_names.RUNS]["TreatMissingData"] == "breaching"
    for alarm in alarms:
        assert alarm["AlarmDescription"].partition(" Runbook: ")[2] in OPERATIONS_RUNBOOKS
    assert metrics[shift_names.SHIFT_FAILURES]["DatapointsToAlarm"] == 5
    assert metrics[shift_names.SHIFT_UNMEASURED]["DatapointsToAlarm"] == 10


def test_the_function_runs_each_minute_and_once_at_a_time(lending: Templates) -> None:
    function = lending.only("AWS::Lambda::Function", STACK)
    assert function["ReservedConcurrentExecutions"] == 1
    assert function["Handler"] == "capacity_shift.handlers.shift"
    assert lending.only("AWS::Scheduler::Schedule", STACK)["ScheduleExpression"] == "rate(1 minute)"


def test_a_deployment_keeps_floors_only_while_the_shift_acts(lending: Templates, watching: Templates) -> None:
    """Red if a deployment ends workers that the forecast needs, or leaves a number of the shift for good."""
    stack = f"Model-{configuration().workers[0].model}"
    for templates, kept in ((lending, True), (watching, False)):
        (chart,) = templates.charts(stack).values()
        (worker,) = (
            each["scaling"]
            for each in json.loads(text(chart["Properties"]["Values"]))["processes"]
            if "scaling" in each
        )
        assert worker.get("shifted", False) is kept
        # The manifest of a queue is applied again only if it changes.
        queue = templates.manifest("Capacity", "ClusterQueue", configuration().queues[0].pool)
        assert ("annotations" in queue["metadata"]) is kept
