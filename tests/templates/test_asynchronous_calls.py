"""Each function whose caller does not wait says whether Lambda repeats its calls, and why it may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inference_contracts import batch_names
from tests.templates.conftest import Synthesise, SynthesiseShipped
from tests.templates.support import Templates

#: A call that is too old or that failed is forgotten: the next minute, or the next round, does the same work.
NOT_REPEATED = {
    "canary.model_questions.handle",
    "capacity_shift.handlers.shift",
    "gpu_health.fault_alarms.handle",
    "gpu_health.minute.handle",
}
#: Nobody asks again: `close` ends a job whose execution ended, and manifests and schedules bring jobs.
REPEATED = {
    "batch.completion.handlers.close",
    "batch.scheduling.handlers.schedule",
    "batch.submission.handlers.handle_object",
    "batch.submission.handlers.handle_schedule",
}
#: Age in seconds, and attempts after the first.
SETTINGS = {(60, 0): NOT_REPEATED, (21600, 2): REPEATED}


def targets(templates: Templates, stack: str) -> Iterator[str]:
    """Yield the names of functions that rules, schedules and other functions call without waiting."""
    resources = templates.by_stack[stack]["Resources"]
    for each in resources.values():
        properties = each.get("Properties", {})
        arns: list[Any] = []
        if each["Type"] == "AWS::Events::Rule":
            arns = [target["Arn"] for target in properties["Targets"]]
        if each["Type"] == "AWS::Scheduler::Schedule":
            arns = [properties["Target"]["Arn"]]
        if each["Type"] == "AWS::Lambda::Function":
            variables = properties.get("Environment", {}).get("Variables", {})
            # `batch.scheduling.handlers` calls it with the type Event.
            arns = [
                {"Fn::GetAtt": [variables[name]["Ref"]]}
                for name in (batch_names.CLOSE_FUNCTION,)
                if name in variables
            ]
        for arn in arns:
            name = arn["Fn::GetAtt"][0]
            if resources[name]["Type"] == "AWS::Lambda::Function":
                yield name


def test_each_asynchronous_function_is_repeated_or_not_by_its_own_word(
    synthesise_shipped: SynthesiseShipped, synthesise: Synthesise
) -> None:
    """Red if a function is called without waiting and says nothing: Lambda would repeat it for six hours."""
    asking = synthesise(lambda spec: spec.update(observability={"canary": {"everyMinutes": 10}}))
    seen = set()
    for templates in (synthesise_shipped("capacity-and-health"), asking):
        seen |= said_by(templates)
    assert seen == REPEATED | NOT_REPEATED


def said_by(templates: Templates) -> set[str]:
    """Return the handlers that say so, after a check of all functions of a platform."""
    seen = set()
    for stack, template in templates.by_stack.items():
        resources = template["Resources"]
        said = {
            each["Properties"]["FunctionName"]["Ref"]: each["Properties"]
            for each in resources.values()
            if each["Type"] == "AWS::Lambda::EventInvokeConfig"
        }
        assert set(targets(templates, stack)) <= set(said), stack
        for name, each in said.items():
            handler = resources[name]["Properties"]["Handler"]
            assert each["Qualifier"] == "$LATEST"
            assert handler in SETTINGS[each["MaximumEventAgeInSeconds"], each["MaximumRetryAttempts"]]
            seen.add(handler)
    return seen
