"""Puts Application Auto Scaling into the emulator, over its alarms and the stand-in of ECS."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from ministack import app
from ministack.core import router
from ministack.core.responses import (
    error_response_json,
    get_account_id,
    get_region,
    json_response,
    request_scope,
)
from ministack.services import cloudwatch, sqs

from inference_local.emulator.ecs.ecs_emulation import EcsEmulation
from inference_local.emulator.ecs.scaling.application_scaling import ApplicationScaling
from inference_local.emulator.ecs.scaling.scalable_target import Shape
from inference_local.emulator.ecs.scaling.scaling_api import ScalingApi
from inference_local.emulator.patches.alarm_evaluation import watched_value
from inference_local.emulator.refusals import AwsApiError

_SERVICE: Final = "application-autoscaling"
_TARGET: Final = "AnyScaleFrontendService"
_SECONDS_BETWEEN_METRICS: Final = 60.0
#: Name of a metric to the attribute of a queue with the same meaning.
_METRICS: Final = {
    "ApproximateNumberOfMessagesVisible": "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
}


class QueueMetrics:
    """Publishes the numbers of messages of every SQS queue, which step policies of batch workers follow.

    Source: Amazon SQS Developer Guide, sqs-available-cloudwatch-metrics.html: the namespace is AWS/SQS, the
    dimension QueueName, and values come once a minute.
    """

    def __init__(self) -> None:
        self._published_at: float | None = None

    def step(self, at_seconds: float, now_seconds: float) -> None:
        """Publish, if a minute has passed.

        at_seconds: Time of the alarms' clock.
        now_seconds: The same in the time of samples.
        """
        if self._published_at is not None and 0 <= at_seconds - self._published_at < _SECONDS_BETWEEN_METRICS:
            return
        self._published_at = at_seconds
        for url, queue in list(sqs._queues.items()):
            sqs._refresh_counts(queue)
            for metric, attribute in _METRICS.items():
                cloudwatch._store_datum(
                    "AWS/SQS",
                    metric,
                    {"QueueName": url.rpartition("/")[2]},
                    now_seconds,
                    "Count",
                    float(queue["attributes"][attribute]),
                    None,
                    None,
                    None,
                )


class EmulatedServices:
    """The services of the stand-in of ECS."""

    def __init__(self, ecs: EcsEmulation) -> None:
        self._ecs = ecs

    def state(self, resource: str) -> tuple[int, int, bool] | None:
        """Return a service's counts, and whether it is deployed."""
        _, cluster, name = resource.split("/")
        found = self._ecs.call("DescribeServices", {"cluster": cluster, "services": [name]})["services"]
        if not found or found[0]["status"] != "ACTIVE":
            return None
        [service] = found
        deploying = any(each["rolloutState"] == "IN_PROGRESS" for each in service["deployments"])
        return service["desiredCount"], service["runningCount"], deploying

    def set_capacity(self, resource: str, capacity: int) -> None:
        """Set a service's desired count."""
        _, cluster, name = resource.split("/")
        self._ecs.call("UpdateService", {"cluster": cluster, "service": name, "desiredCount": capacity})


class EmulatedAlarms:
    """The alarms of the emulator, as of one moment."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self.speed = 1.0

    def raised(self) -> Mapping[str, Shape]:
        """Return the raised alarms with actions."""
        return {
            name: alarm
            for name, alarm in cloudwatch._alarms.items()
            if alarm["StateValue"] == "ALARM"
            and alarm.get("ActionsEnabled", True)
            and alarm.get("AlarmActions")
        }

    def value(self, alarm: Shape, at_seconds: float) -> float | None:
        """Return the newest data point of an alarm."""
        return watched_value(alarm, at_seconds, now_seconds=self.now_seconds, speed=self.speed)

    def put(self, request: Shape) -> None:
        """Create an alarm. Raises ValueError if the emulator refuses it."""
        status, _, body = cloudwatch._put_metric_alarm({}, request, False, True)  # noqa: FBT003 - of JSON
        if status >= 400:  # noqa: PLR2004 - first status of errors
            raise ValueError(body.decode())

    def delete(self, name: str) -> None:
        """Delete an alarm."""
        cloudwatch._alarms.pop(name, None)


class ScalingEmulation:
    """Application Auto Scaling in the emulator's process.

    ecs: The services that it scales.
    """

    def __init__(self, ecs: EcsEmulation) -> None:
        self._account, self._region = get_account_id(), get_region()
        self._alarms = EmulatedAlarms()
        self._queues = QueueMetrics()
        self._now = time.time()
        self._scaling = ApplicationScaling(EmulatedServices(ecs), self._alarms, self._wall_time)
        self._api = ScalingApi(
            self._scaling,
            self._alarms,
            clock=lambda: self._now,
            new_id=lambda: str(uuid.uuid4()),
            place=f"{self._region}:{self._account}",
        )

    def register(self) -> None:
        """Answer the service's calls."""
        app.SERVICE_HANDLERS[_SERVICE] = self._handle
        router.SERVICE_PATTERNS[_SERVICE] = {
            "target_prefixes": [_TARGET],
            "host_patterns": [r"application-autoscaling\."],
        }

    def call(self, action: str, request: Shape) -> dict[str, Any]:
        """Answer a call of CloudFormation. Raises AwsApiError if the request is wrong."""
        return self._api.answer(action, request)

    def follow(self, at_seconds: float, now_seconds: float, speed: float) -> None:
        """Act on raised alarms and on the schedule, see `alarm_schedule.Follower`."""
        self._now, self._alarms.now_seconds, self._alarms.speed = at_seconds, now_seconds, speed
        with request_scope(self._account, self._region):
            self._queues.step(at_seconds, now_seconds)
            self._scaling.step(at_seconds)

    async def _handle(
        self, _method: str, _path: str, headers: Mapping[str, str], body: bytes, _query: Mapping[str, Any]
    ) -> Any:
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        try:
            return json_response(self._api.answer(action, json.loads(body or b"{}")))
        except AwsApiError as error:
            return error_response_json(error.code, str(error), 400)

    def _wall_time(self, seconds: float) -> float:
        return time.time() - (self._now - seconds) / self._alarms.speed
