"""The calls of Application Auto Scaling, checked against botocore's model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import botocore.session
from botocore.validate import ParamValidator

from inference_local.emulator.ecs.scaling.application_scaling import (
    ApplicationScaling,
    KeptPolicy,
)
from inference_local.emulator.ecs.scaling.scalable_target import (
    ScalableTarget,
    Shape,
    check_steps,
    scheduled_change,
    tracking_alarms,
)
from inference_local.emulator.refusals import NEW_TARGET_WITHOUT_RANGE, AwsApiError

Answer = dict[str, Any]
DIMENSION = "ecs:service:DesiredCount"
NAMESPACE = "ecs"


class AlarmStore(Protocol):
    """Where the alarms of target tracking policies are."""

    def put(self, request: Shape, /) -> None:
        """Create or replace an alarm (API PutMetricAlarm)."""

    def delete(self, name: str, /) -> None:
        """Delete an alarm."""


class ScalingApi:
    """Answers calls by name, see `answer`.

    scaling: What the calls change.
    alarms: Where the alarms of target tracking policies are.
    clock: The clock of `scaling`.
    new_id: Returns an id in the form of a UUID.
    place: Region and account of ARNs, as ``region:account``.
    """

    def __init__(
        self,
        scaling: ApplicationScaling,
        alarms: AlarmStore,
        *,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        place: str,
    ) -> None:
        self._scaling = scaling
        self._alarms = alarms
        self._clock = clock
        self._new_id = new_id
        self._place = place
        self._model = botocore.session.get_session().get_service_model("application-autoscaling")
        self.calls: dict[str, Callable[[Shape], Answer]] = {
            "RegisterScalableTarget": self._register,
            "DeregisterScalableTarget": self._deregister,
            "DescribeScalableTargets": self._describe_targets,
            "PutScalingPolicy": self._put_policy,
            "DeleteScalingPolicy": self._delete_policy,
            "DescribeScalingPolicies": self._describe_policies,
            "PutScheduledAction": self._put_action,
            "DeleteScheduledAction": self._delete_action,
            "DescribeScheduledActions": self._describe_actions,
            "DescribeScalingActivities": self._describe_activities,
        }

    def answer(self, action: str, request: Shape) -> Answer:
        """Answer a call.

        Raises AwsApiError if the request is wrong, or of a form that the templates do not have.
        """
        if action not in self.calls:
            raise AwsApiError("ValidationException", f"the stand-in has no call {action}")
        report = ParamValidator().validate(request, self._model.operation_model(action).input_shape)
        if report.has_errors():
            raise AwsApiError("ValidationException", report.generate_report())
        if request["ServiceNamespace"] != NAMESPACE:
            raise AwsApiError("ValidationException", "the stand-in scales the namespace ecs only")
        return self.calls[action](request)

    def _register(self, request: Shape) -> Answer:
        resource, now = request["ResourceId"], self._clock()
        target = self._scaling.targets.get(resource)
        if target is None:
            if not {"MinCapacity", "MaxCapacity"} <= request.keys():
                raise NEW_TARGET_WITHOUT_RANGE.error()
            target = ScalableTarget(resource, 0, 0, now)
        minimum = int(request.get("MinCapacity", target.minimum))
        maximum = int(request.get("MaxCapacity", target.maximum))
        if minimum > maximum:
            raise AwsApiError("ValidationException", "MinCapacity must not exceed MaxCapacity")
        target.minimum, target.maximum = minimum, maximum
        target.suspended = {**target.suspended, **request.get("SuspendedState", {})}
        self._scaling.targets[resource] = target
        self._scaling.keep_bounds(resource, "RegisterScalableTarget", now)
        return {"ScalableTargetARN": self._arn(f"scalable-target/{resource}")}

    def _deregister(self, request: Shape) -> Answer:
        """Remove a target with its policies and scheduled actions (API DeregisterScalableTarget)."""
        target = self._target(request)
        for policy in list(self._scaling.policies.values()):
            if policy.request["ResourceId"] == target.resource:
                self._remove(policy)
        for key in [key for key in self._scaling.scheduled if key[0] == target.resource]:
            del self._scaling.scheduled[key]
        del self._scaling.targets[target.resource]
        return {}

    def _describe_targets(self, request: Shape) -> Answer:
        wanted = request.get("ResourceIds") or self._scaling.targets
        return {
            "ScalableTargets": [
                {
                    **_of_service(each.resource),
                    "MinCapacity": each.minimum,
                    "MaxCapacity": each.maximum,
                    "RoleARN": f"arn:aws:iam::{self._place.partition(':')[2]}:role/aws-service-role/"
                    "ecs.application-autoscaling.amazonaws.com/"
                    "AWSServiceRoleForApplicationAutoScaling_ECSService",
                    "CreationTime": self._scaling.wall_time(each.created_at),
                    "SuspendedState": {
                        "DynamicScalingInSuspended": False,
                        "DynamicScalingOutSuspended": False,
                        "ScheduledScalingSuspended": False,
                        **each.suspended,
                    },
                }
                for each in self._scaling.targets.values()
                if each.resource in wanted
            ]
        }

    def _put_policy(self, request: Shape) -> Answer:
        """Create or change a policy; alarms of target tracking are replaced."""
        self._target(request)
        found = self._policy(request)
        arn = found.arn if found else self._policy_arn(request)
        policy = KeptPolicy(arn, dict(request))
        try:
            if not policy.tracks:
                check_steps(policy.settings)
            alarms = (
                tracking_alarms(request["ResourceId"], self._new_id(), arn, policy.settings)
                if policy.tracks
                else []
            )
        except (ValueError, KeyError) as error:
            raise AwsApiError("ValidationException", f"{request['PolicyName']}: {error}") from error
        if found:
            self._remove(found)
        for alarm in alarms:
            self._alarms.put(alarm)
        policy.alarms = tuple(each["AlarmName"] for each in alarms)
        self._scaling.policies[arn] = policy
        return {"PolicyARN": arn, "Alarms": self._described_alarms(policy)}

    def _delete_policy(self, request: Shape) -> Answer:
        found = self._policy(request)
        if found is None:
            raise AwsApiError("ObjectNotFoundException", f"no scaling policy {request['PolicyName']}")
        self._remove(found)
        return {}

    def _describe_policies(self, request: Shape) -> Answer:
        return {
            "ScalingPolicies": [
                {
                    **each.request,
                    "PolicyARN": each.arn,
                    "Alarms": self._described_alarms(each),
                }
                for each in self._scaling.policies.values()
                if request.get("ResourceId") in (None, each.request["ResourceId"])
            ]
        }

    def _put_action(self, request: Shape) -> Answer:
        self._target(request)
        try:
            change = scheduled_change(request)
        except ValueError as error:
            raise AwsApiError("ValidationException", str(error)) from error
        self._scaling.scheduled[change.resource, change.name] = change
        return {}

    def _delete_action(self, request: Shape) -> Answer:
        key = request["ResourceId"], request["ScheduledActionName"]
        if self._scaling.scheduled.pop(key, None) is None:
            raise AwsApiError("ObjectNotFoundException", f"no scheduled action {key[1]}")
        return {}

    def _describe_actions(self, request: Shape) -> Answer:
        return {
            "ScheduledActions": [
                {
                    **each.request,
                    "ScheduledActionARN": self._arn(f"scheduledAction:{each.resource}:{each.name}"),
                }
                for each in self._scaling.scheduled.values()
                if request.get("ResourceId") in (None, each.resource)
            ]
        }

    def _describe_activities(self, request: Shape) -> Answer:
        return {
            "ScalingActivities": [
                {
                    "ActivityId": f"{self._place}-{place}",
                    **_of_service(resource),
                    "Description": f"Setting desired count: {cause}",
                    "Cause": cause,
                    "StartTime": self._scaling.wall_time(at),
                    "StatusCode": "Successful"
                    if activity is None or activity.ended_at is not None
                    else "InProgress",
                }
                for place, (resource, cause, at, activity) in enumerate(self._scaling.activities)
                if request.get("ResourceId") in (None, resource)
            ]
        }

    def _target(self, request: Shape) -> ScalableTarget:
        found = self._scaling.targets.get(request["ResourceId"])
        if found is None:
            raise AwsApiError(
                "ObjectNotFoundException", f"{request['ResourceId']} is not registered as a scalable target"
            )
        return found

    def _policy(self, request: Shape) -> KeptPolicy | None:
        names = "ResourceId", "PolicyName"
        return next(
            (
                each
                for each in self._scaling.policies.values()
                if all(each.request[name] == request[name] for name in names)
            ),
            None,
        )

    def _remove(self, policy: KeptPolicy) -> None:
        """Remove a policy. The service deletes the alarms that it made (API DeleteScalingPolicy)."""
        for name in policy.alarms:
            self._alarms.delete(name)
        del self._scaling.policies[policy.arn]

    def _described_alarms(self, policy: KeptPolicy) -> list[dict[str, str]]:
        return [
            {"AlarmName": name, "AlarmARN": f"arn:aws:cloudwatch:{self._place}:alarm:{name}"}
            for name in policy.alarms
        ]

    def _policy_arn(self, request: Shape) -> str:
        """Return an ARN in the form of the examples of API PutScalingPolicy."""
        resource = f"{NAMESPACE}/{request['ResourceId']}"
        return (
            f"arn:aws:autoscaling:{self._place}:scalingPolicy:{self._new_id()}:resource/{resource}:"
            f"policyName/{request['PolicyName']}"
        )

    def _arn(self, rest: str) -> str:
        return f"arn:aws:application-autoscaling:{self._place}:{rest}"


def _of_service(resource: str) -> dict[str, str]:
    return {"ServiceNamespace": NAMESPACE, "ResourceId": resource, "ScalableDimension": DIMENSION}
