"""What AWS Step Functions refuses for a definition alone, when a state machine is created or changed.

Step Functions checks states and their names before it stores a definition. ministack stores what it cannot
run.
"""

from __future__ import annotations

from typing import Final

from inference_local.emulator import definition_checks as checks
from inference_local.emulator.refusals import Check, Refusal

_MACHINE: Final = (
    "stepfunctions:CreateStateMachine, stepfunctions:UpdateStateMachine, AWS::StepFunctions::StateMachine"
)
_RECORDED: Final = "localstack/localstack, {}, recorded from AWS"


def _definition(
    when: str, message: str, source: str, check: Check, *, kind: str = "SCHEMA_VALIDATION_FAILED: ",
    is_quoted: bool = True,
) -> Refusal:  # fmt: skip
    """Return a row about definitions. The message follows AWS's first words."""
    return Refusal(
        call=_MACHINE,
        when=when,
        code="InvalidDefinition",
        message=f"Invalid State Machine Definition: '{kind}{message}'",
        source=source,
        check=check,
        is_quoted=is_quoted,
    )


MACHINE_JSON = _definition(
    "The definition of a state machine is no JSON object",
    "{found}",
    _RECORDED.format("test_sfn_api_validation.snapshot.json: INVALID_JSON_DESCRIPTION"),
    checks.no_json,
    kind="INVALID_JSON_DESCRIPTION: ",
)
MACHINE_FIELDS = _definition(
    "A state machine, or the part of a map or a branch, has no states or does not say which is the first",
    "These fields are required: [{fields}] at {place}",
    _RECORDED.format("test_sfn_api.snapshot.json, test_create_delete_invalid_sm"),
    checks.missing_fields,
)
MACHINE_TARGET = _definition(
    "A state is followed by one that does not exist",
    "Missing 'Next' target: {state} at {place}",
    "localstack/localstack#11978; serverless-operations/serverless-step-functions#250",
    checks.missing_target,
    kind="MISSING_TRANSITION_TARGET: ",
)
MACHINE_UNREACHABLE = _definition(
    "No other state leads to a state",
    'State "{state}" is not reachable. at {place}',
    "localstack/localstack#11978; ChristopheBougere/asl-validator#17",
    checks.not_reachable,
    kind="MISSING_TRANSITION_TARGET: ",
)
MACHINE_TYPE = _definition(
    "A state has a type that Step Functions does not know",
    "The field 'Type' should have one of these values: [{types}] at {place}",
    _RECORDED.format("test_test_state_machine_scenarios.snapshot.json"),
    checks.unknown_type,
)
MACHINE_LANGUAGE = _definition(
    "A state uses JSONPath, and the whole machine JSONata",
    "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine at {place}",
    _RECORDED.format("test_sfn_api_validation.snapshot.json"),
    checks.other_language,
)
MACHINE_EXPRESS_TOKEN = _definition(
    "A state of an express workflow waits for a token",
    "Express state machine does not support '.waitForTaskToken' service integration  at {place}",
    _RECORDED.format("test_sfn_api_express.snapshot.json"),
    checks.express_token,
)
MACHINE_RESOURCE = _definition(
    "A task calls an action that the service does not have, or that does not begin with a small letter",
    "The resource provided {resource} is not recognized. The value is not a valid resource ARN, or the "
    "resource is not available in this region. at {place}",
    _RECORDED.format("test_dynamodb_task_service.snapshot.json"),
    checks.unknown_resource,
)
MACHINE_FIELD = _definition(
    "A state has a field that its type does not have",
    "Field '{field}' is not supported at {place}",
    "anomalyco/sst#6747",
    checks.unknown_field,
)
MACHINE_JSONPATH = _definition(
    "A state in JSONata has a field of JSONPath, such as Parameters",
    "The field '{field}' is not supported with JSONata at {place}",
    "AWS Step Functions Developer Guide, transforming data with JSONata",
    checks.fields_of_jsonpath,
    is_quoted=False,
)
MACHINE_END = _definition(
    "A state neither ends nor is followed by another, or both",
    "A state has one of 'Next' and 'End' at {place}",
    "Amazon States Language specification, transitions",
    checks.ends_and_goes_on,
    is_quoted=False,
)
MACHINE_STATE_NAME = _definition(
    "The name of a state is longer than 80 characters",
    "The name of a state has at most 80 characters at {place}",
    "AWS Step Functions Developer Guide, state machine structure: States",
    checks.long_name,
    is_quoted=False,
)
MACHINE_STATE_TWICE = _definition(
    "Two states of a machine have the same name, also one within a map and one outside",
    "The name of a state is unique in the state machine at {place}",
    "AWS Step Functions Developer Guide, state machine structure: names are unique in the whole machine",
    checks.doubled_name,
    is_quoted=False,
)
MACHINE_LABEL = _definition(
    "The label of a distributed map is longer than 40 characters, or has special ones",
    "A label has at most 40 characters, and no special ones at {place}",
    "AWS Step Functions Developer Guide, Map state in distributed mode: Label",
    checks.wrong_label,
    is_quoted=False,
)
MACHINE_ALL_ERRORS = _definition(
    "States.ALL is beside other errors, or not in the last retrier or catcher",
    "States.ALL must be alone and in the last one at {place}",
    "AWS Step Functions Developer Guide, handling errors: States.ALL",
    checks.all_errors_first,
    is_quoted=False,
)
MACHINE_RETRIER = _definition(
    "A retrier has an interval, a delay, a rate or a number of attempts out of its bounds",
    "A field of the retrier is out of its bounds at {place}",
    "AWS Step Functions Developer Guide, handling errors: retry examples and bounds",
    checks.wrong_retrier,
    is_quoted=False,
)
MACHINE_HEARTBEAT = _definition(
    "The time between heartbeats of a task is not shorter than its timeout",
    "HeartbeatSeconds must be smaller than TimeoutSeconds at {place}",
    "AWS Step Functions Developer Guide, task state fields: HeartbeatSeconds",
    checks.long_heartbeat,
    is_quoted=False,
)
MACHINE_NAME = Refusal(
    call="stepfunctions:CreateStateMachine, stepfunctions:StartExecution, AWS::StepFunctions::StateMachine",
    when="The name of a state machine or an execution has white space, brackets, wildcards or special "
    "characters",
    code="InvalidName",
    message="Invalid Name: '{name}'",
    source="AWS Step Functions API Reference, CreateStateMachine and StartExecution, name; words: "
    "localstack/localstack, test_sfn_api_activities.snapshot.json, recorded from AWS",
    check=checks.wrong_name,
)
MACHINE_LOG = Refusal(
    call=_MACHINE,
    when="The log of a state machine has a level and no destination, or two destinations",
    code="InvalidLoggingConfiguration",
    message="Invalid Logging Configuration: Must specify exactly one Log Destination.",
    source=_RECORDED.format("test_sfn_api_logs.snapshot.json"),
    check=checks.no_destination,
)
MACHINE_LOG_ARN = Refusal(
    call=_MACHINE,
    when="The ARN of the log of a state machine does not end with :*",
    code="InvalidLoggingConfiguration",
    message="Invalid Logging Configuration: the ARN of the log group {arn} must end with ':*'",
    source="AWS Step Functions API Reference, CloudWatchLogsLogGroup, logGroupArn: the ARN must end with :*",
    check=checks.wrong_destination,
    is_quoted=False,
)
EXECUTION_INPUT = Refusal(
    call="stepfunctions:StartExecution",
    when="The input of an execution is no JSON",
    code="InvalidExecutionInput",
    message="Invalid State Machine Execution Input: '{found}'",
    source=_RECORDED.format("test_sfn_api.snapshot.json, test_invalid_start_execution_input"),
    check=checks.wrong_input("input"),
)
TASK_OUTPUT = Refusal(
    call="stepfunctions:SendTaskSuccess",
    when="The result of a task is no JSON",
    code="InvalidOutput",
    message="Invalid Output: '{found}'",
    source="AWS Step Functions API Reference, SendTaskSuccess: InvalidOutput",
    check=checks.wrong_input("output"),
    is_quoted=False,
)
