"""Alarms of the emulator change their states, and act on them, as CloudWatch documents it.

The emulator of this module evaluates alarms when a test says so, at times that the test chooses.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from inference_local.emulator.emulator import Emulator
from tests.local.emulator.alarm_parts import PATIENCE_SECONDS, AlarmParts


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("manual"), region="us-west-2", alarm_speed=0) as running:
        yield running


@pytest.fixture
def parts(manual: Emulator) -> AlarmParts:
    return AlarmParts(manual.client)


@pytest.fixture
def evaluate(manual: Emulator, parts: AlarmParts) -> Callable[[float], tuple[str, ...]]:
    """Evaluate at the end of a minute, and return what changed."""
    return lambda minute: manual.evaluate_alarms(parts.minute(minute))


def test_states_follow_periods_and_data_points(
    parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]
) -> None:
    name = parts.alarm()
    parts.put("Latency", 50, 1, 50, 1, 1)
    assert parts.state(name) == "INSUFFICIENT_DATA"  # data alone change nothing
    states = []
    for minute in (1, 2, 3, 4, 5):
        evaluate(minute)
        states.append(parts.state(name))
    assert states == ["INSUFFICIENT_DATA", "OK", "ALARM", "OK", "OK"]


def test_a_change_sends_one_event_and_one_message(
    parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]
) -> None:
    topic, messages = parts.topic()
    name = parts.alarm(AlarmActions=[topic], AlarmDescription="It is slow.")
    events = parts.queue_of_events(name)
    parts.put("Latency", 50, 50, 50, 50)
    # Alarms of other tests may change as well.
    assert f"{name}: INSUFFICIENT_DATA -> ALARM" in evaluate(3)
    evaluate(3)
    evaluate(4)
    [event] = parts.received(events)
    arn = parts.described(name)["AlarmArn"]
    changed = parts.minute(3)
    assert (event["source"], event["detail-type"]) == ("aws.cloudwatch", "CloudWatch Alarm State Change")
    assert event["resources"] == [arn]
    detail = event["detail"]
    assert detail["alarmName"] == name
    assert detail["previousState"]["value"] == "INSUFFICIENT_DATA"
    assert detail["previousState"]["reason"] == "Unchecked: Initial alarm creation"
    assert detail["state"]["value"] == "ALARM"
    assert detail["state"]["reason"].startswith("Threshold Crossed: 3 out of the last 3 datapoints [50.0 (")
    assert json.loads(detail["state"]["reasonData"])["recentDatapoints"] == [50.0, 50.0, 50.0]
    assert detail["configuration"]["metrics"][0]["metricStat"]["metric"]["namespace"] == parts.space
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(changed))
    assert detail["state"]["timestamp"] == f"{stamp}.000+0000"
    assert event["time"] == f"{stamp}Z"
    [message] = parts.received(messages)
    assert (message["AlarmName"], message["OldStateValue"]) == (name, "INSUFFICIENT_DATA")
    assert message["Region"] == "US West (Oregon)"
    assert message["Trigger"]["DatapointsToAlarm"] == 2
    assert parts.described(name)["StateUpdatedTimestamp"].timestamp() == changed


def test_the_next_event_knows_the_state_before(
    parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]
) -> None:
    name = parts.alarm()
    events = parts.queue_of_events(name)
    parts.put("Latency", 50, 50, 1, 1)
    evaluate(2)
    evaluate(4)
    first, second = parts.received(events)
    assert second["detail"]["previousState"] == first["detail"]["state"]
    assert second["detail"]["state"]["value"] == "OK"


def test_metric_math_over_dimensions(parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]) -> None:
    for worker, values in (("a", (6, 6, 6)), ("b", (6, 6, 6)), ("c", (900, 900, 900))):
        parts.put("Errors", *values, Dimensions=[{"Name": "Worker", "Value": worker}])
    queries = [
        {
            "Id": f"m{worker}",
            "ReturnData": False,
            "MetricStat": {
                "Metric": {
                    "Namespace": parts.space,
                    "MetricName": "Errors",
                    "Dimensions": [{"Name": "Worker", "Value": worker}],
                },
                "Period": 60,
                "Stat": "Sum",
            },
        }
        for worker in "ab"
    ]
    watched = {"Id": "total", "Expression": "SUM(METRICS())", "Label": "Errors", "ReturnData": True}
    name = parts.alarm(Metrics=[watched, *queries])
    events = parts.queue_of_events(name)
    below = parts.alarm(Metrics=[{**watched, "Expression": "MAX(METRICS())"}, *queries])
    evaluate(3)
    assert (parts.state(name), parts.state(below)) == ("ALARM", "OK")
    [event] = parts.received(events)
    metrics = event["detail"]["configuration"]["metrics"]
    assert metrics[0] == {
        "id": "total",
        "expression": "SUM(METRICS())",
        "label": "Errors",
        "returnData": True,
    }
    assert [each["id"] for each in metrics] == ["total", "ma", "mb"]
    assert parts.described(name)["Metrics"][0]["Expression"] == "SUM(METRICS())"


def test_missing_data_can_raise_an_alarm(
    parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]
) -> None:
    names = {
        how: parts.alarm(TreatMissingData=how) for how in ("breaching", "notBreaching", "missing", "ignore")
    }
    parts.put("Latency", 1, 1, 1)
    evaluate(3)
    evaluate(20)
    states = {how: parts.state(name) for how, name in names.items()}
    assert states == {
        "breaching": "ALARM",
        "notBreaching": "OK",
        "missing": "INSUFFICIENT_DATA",
        "ignore": "OK",
    }


def test_a_set_state_lasts_until_the_next_comparison(
    parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]
) -> None:
    name = parts.alarm()
    events = parts.queue_of_events(name)
    parts.put("Latency", 1, 1, 1, 1)
    evaluate(3)
    parts.cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="a test")
    assert parts.state(name) == "ALARM"
    evaluate(4)
    assert parts.state(name) == "OK"
    states = [event["detail"]["state"] for event in parts.received(events)]
    assert [state["value"] for state in states] == ["OK", "ALARM", "OK"]
    assert states[1]["reason"] == "a test"
    assert "reasonData" not in states[1]


def test_disabled_actions_still_send_the_event(
    parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]
) -> None:
    topic, messages = parts.topic()
    name = parts.alarm(AlarmActions=[topic], ActionsEnabled=False)
    events = parts.queue_of_events(name)
    parts.put("Latency", 50, 50, 50)
    evaluate(3)
    assert len(parts.received(events)) == 1
    assert parts.received(messages) == []


_FUNCTION = """
import json
from pathlib import Path
def handler(event, context):
    Path("FILE.part").write_text(json.dumps(event))
    Path("FILE.part").rename("FILE")
"""


def test_a_function_can_be_an_action(
    manual: Emulator, parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]], tmp_path: Path
) -> None:
    file = tmp_path / "event.json"
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", _FUNCTION.replace("FILE", str(file)))
    function = manual.client("lambda").create_function(
        FunctionName="of-alarm",
        Runtime="python3.11",
        Handler="index.handler",
        Role="arn:aws:iam::123456789012:role/any",
        Code={"ZipFile": code.getvalue()},
    )
    name = parts.alarm(AlarmActions=[function["FunctionArn"]])
    parts.put("Latency", 50, 50, 50)
    evaluate(3)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not file.exists():
        assert time.monotonic() < deadline, "the function was never invoked"
        time.sleep(0.05)
    event = json.loads(file.read_text())
    assert event["alarmArn"] == parts.described(name)["AlarmArn"]
    assert event["alarmData"]["state"]["value"] == "ALARM"


def test_composite_alarms_follow_their_children(
    parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]
) -> None:
    one, other = parts.alarm("One"), parts.alarm("Other")
    both = parts.composite(f"ALARM({one}) AND ALARM({other})")
    either = parts.composite(f"ALARM({one}) OR ALARM({other})")
    only = parts.composite(f"ALARM({one}) AND NOT ALARM({other})")
    events = parts.queue_of_events(only)
    parts.put("One", 50, 50, 50, 50)
    parts.put("Other", 1, 1, 50, 50)
    evaluate(3)
    assert [parts.state(each) for each in (both, either, only)] == ["OK", "ALARM", "ALARM"]
    evaluate(4)
    assert [parts.state(each) for each in (both, either, only)] == ["ALARM", "ALARM", "OK"]
    first, second = parts.received(events)
    assert first["detail"]["configuration"] == {"alarmRule": f"ALARM({one}) AND NOT ALARM({other})"}
    assert (
        json.loads(first["detail"]["state"]["reasonData"])["triggeringAlarms"][0]["state"]["value"] == "ALARM"
    )
    assert second["detail"]["state"]["timestamp"] > first["detail"]["state"]["timestamp"]


def test_a_suppressor_keeps_a_composite_alarm_from_its_actions(
    parts: AlarmParts, evaluate: Callable[[float], tuple[str, ...]]
) -> None:
    child, suppressor = parts.alarm("Child"), parts.alarm("Maintenance")
    topic, messages = parts.topic()
    parts.put("Child", 1, 1, 1, *[50] * 10)
    parts.put("Maintenance", 50, 50, 50, 50, 50, *[1] * 8)
    evaluate(3)
    name = parts.composite(
        f"ALARM({child})",
        AlarmActions=[topic],
        ActionsSuppressor=suppressor,
        ActionsSuppressorWaitPeriod=60,
        ActionsSuppressorExtensionPeriod=120,
    )
    evaluate(5)
    assert parts.state(name) == "ALARM"
    assert parts.described(name)["ActionsSuppressedBy"] == "Alarm"
    evaluate(7)  # two of the last three minutes of the suppressor are well
    assert parts.described(name)["ActionsSuppressedBy"] == "ExtensionPeriod"
    evaluate(8)
    assert parts.received(messages) == []
    evaluate(9)
    [message] = parts.received(messages)
    assert (message["AlarmName"], message["NewStateValue"]) == (name, "ALARM")
    assert "ActionsSuppressedBy" not in parts.described(name)
    evaluate(10)
    assert parts.received(messages) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"Statistic": "Maximum", "Period": 45}, "Period is 45"),
        ({"Metrics": [{"Id": "e1", "Expression": "ANOMALY_DETECTION_BAND(m1)"}]}, "not emulated"),
    ],
)
def test_an_alarm_that_cannot_be_evaluated_is_refused(
    parts: AlarmParts, wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match=words):
        parts.alarm(**wrong)


def test_an_accelerated_emulator_evaluates_by_itself(tmp_path: Path) -> None:
    with Emulator(tmp_path, region="us-west-2", alarm_speed=1200) as fast:
        parts = AlarmParts(fast.client)
        # Five minutes last a quarter of a second.
        name = parts.alarm(
            Period=300, EvaluationPeriods=1, DatapointsToAlarm=1, TreatMissingData="notBreaching"
        )
        began = time.monotonic()
        deadline = began + PATIENCE_SECONDS
        # After two seconds, the clock of alarms is forty minutes ahead of the values' time.
        while time.monotonic() - began < 2 or parts.state(name) != "ALARM":
            assert time.monotonic() < deadline, parts.described(name)
            parts.cloudwatch.put_metric_data(
                Namespace=parts.space, MetricData=[{"MetricName": "Latency", "Value": 50}]
            )
            time.sleep(0.1)
        while parts.state(name) != "OK":
            assert time.monotonic() < deadline, parts.described(name)
            time.sleep(0.1)
