"""The state machine that bakes images into a snapshot, in the Amazon States Language (ASL).

It follows AWS's sample for Bottlerocket (https://github.com/aws-samples/bottlerocket-images-cache). Every
step that can fail leads to the termination of the instance. The machine has no timeout of its own, because
a timeout would end the machine and leave the instance running. Each wait has a limit instead.

The definition is ASL because CDK's ``CallAwsService`` grants each call without conditions.
``image_baker_policies`` limits the calls to tags and to the launch template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference_catalog.image_cache import DATA_DEVICE, IMAGES_TAG, POOL_TAG

State = dict[str, Any]

_LOOK_SECONDS = 15
#: Time in which the agent of a new instance must register. Run Command refuses the instance until then.
_AGENT_ATTEMPTS = 60
#: Maximum number of status checks for a stopping instance or a pending snapshot: six hours in total, and well
#: below the limit of 25,000 events per execution.
_MAX_LOOKS = 1440
_CALL_ATTEMPTS = 5
#: The volume limits the speed of unpacking (Amazon EBS User Guide, General Purpose SSD volumes).
_DATA_VOLUME_SPEED = {"Throughput": 1000, "Iops": 4000}


@dataclass(frozen=True)
class BakingResources:
    """Resources of the state machine."""

    launch_templates: Mapping[str, Mapping[str, str]]
    """EC2's ``LaunchTemplateId`` and ``Version``, by architecture."""
    document_name: str
    """Name of the Systems Manager document that pulls images."""
    tags: Mapping[str, str]
    """Tags of the instance, its volumes and the snapshot."""
    snapshot_tags: Mapping[str, str]
    """Additional tags of the snapshot."""


def baking_definition(resources: BakingResources) -> dict[str, Any]:
    """Return the definition. Its input is ``pool, architecture, images, imagesDigest, sizeGib``.

    resources: Resources of the state machine.
    """
    return {
        "Comment": "Bakes container images into a snapshot of Bottlerocket's data volume",
        "QueryLanguage": "JSONata",
        "StartAt": "ReadInput",
        "States": {
            **_starting(resources),
            **_pulling(resources),
            **_stopping(),
            **_copying(resources),
            **_ending(),
        },
    }


def _starting(resources: BakingResources) -> dict[str, State]:
    """Start the instance. EC2 starts only one instance for two requests with the same token."""
    tags = _tags(resources.tags)
    return {
        "ReadInput": {
            "Type": "Pass",
            "Assign": {
                "architecture": "{% $states.input.architecture %}",
                "failure": '{% "" %}',
                "images": '{% $join($states.input.images, " ") %}',
                "imagesDigest": "{% $states.input.imagesDigest %}",
                "launchTemplates": {name: dict(each) for name, each in resources.launch_templates.items()},
                "looks": 0,
                "pool": "{% $states.input.pool %}",
                "sizeGib": "{% $states.input.sizeGib %}",
                "snapshotId": '{% "" %}',
            },
            "Next": "StartInstance",
        },
        "StartInstance": _call(
            "ec2:runInstances",
            {
                "BlockDeviceMappings": [_volume("/dev/xvda"), _volume(DATA_DEVICE, _data_volume())],
                "ClientToken": "{% $states.context.Execution.Name %}",
                "LaunchTemplate": "{% $lookup($launchTemplates, $architecture) %}",
                "MaxCount": 1,
                "MinCount": 1,
                "TagSpecifications": [
                    {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")
                ],
            },
            assign={"instanceId": "{% $states.result.Instances[0].InstanceId %}"},
            then="PullImages",
            on_failure="NotBaked",
        ),
    }


def _pulling(resources: BakingResources) -> dict[str, State]:
    """Pull and unpack the images. Systems Manager stops the command after the document's timeout."""
    return {
        "PullImages": _call(
            "ssm:sendCommand",
            {
                "DocumentName": resources.document_name,
                "InstanceIds": ["{% $instanceId %}"],
                "Parameters": {"Images": ["{% $images %}"]},
            },
            assign={"commandId": "{% $states.result.Command.CommandId %}"},
            then="WaitForImages",
            attempts=_AGENT_ATTEMPTS,
        ),
        "WaitForImages": _wait("LookAtCommand"),
        "LookAtCommand": _call(
            "ssm:getCommandInvocation",
            {"CommandId": "{% $commandId %}", "InstanceId": "{% $instanceId %}"},
            assign={
                "status": "{% $states.result.Status %}",
                "failure": (
                    '{% $states.result.Status in ["Pending", "InProgress", "Delayed", "Success"] ? "" : '
                    '"the images were not pulled (" & $states.result.Status & "): " & '
                    "$substring($states.result.StandardErrorContent, -1000) %}"
                ),
            },
            then="AreImagesThere",
        ),
        "AreImagesThere": _choice(
            {
                '{% $status = "Success" %}': "StopInstance",
                '{% $failure = "" %}': "WaitForImages",
            },
            otherwise="TerminateInstance",
        ),
    }


def _stopping() -> dict[str, State]:
    """Stop the instance, so that all data is written to the volume."""
    return {
        "StopInstance": _call(
            "ec2:stopInstances", {"InstanceIds": ["{% $instanceId %}"]}, then="WaitForInstance"
        ),
        "WaitForInstance": _wait("LookAtInstance"),
        "LookAtInstance": _call(
            "ec2:describeInstances",
            {"InstanceIds": ["{% $instanceId %}"]},
            assign={
                **_look("the instance did not stop"),
                "status": "{% $states.result.Reservations[0].Instances[0].State.Name %}",
                "volumeId": (
                    "{% $states.result.Reservations[0].Instances[0]"
                    f'.BlockDeviceMappings[DeviceName="{DATA_DEVICE}"].Ebs.VolumeId %}}'
                ),
            },
            then="HasInstanceStopped",
        ),
        "HasInstanceStopped": _choice(
            {
                '{% $status = "stopped" %}': "TakeSnapshot",
                '{% $failure = "" %}': "WaitForInstance",
            },
            otherwise="TerminateInstance",
        ),
    }


def _copying(resources: BakingResources) -> dict[str, State]:
    """Take the snapshot, and keep the volume until the snapshot is complete."""
    tags = _tags({**resources.tags, **resources.snapshot_tags}, {IMAGES_TAG: "{% $imagesDigest %}"})
    return {
        "TakeSnapshot": _call(
            "ec2:createSnapshot",
            {
                "Description": '{% $substring("Images: " & $images, 0, 255) %}',
                "TagSpecifications": [{"ResourceType": "snapshot", "Tags": tags}],
                "VolumeId": "{% $volumeId %}",
            },
            assign={"snapshotId": "{% $states.result.SnapshotId %}"},
            then="WaitForSnapshot",
        ),
        "WaitForSnapshot": _wait("LookAtSnapshot"),
        "LookAtSnapshot": _call(
            "ec2:describeSnapshots",
            {"SnapshotIds": ["{% $snapshotId %}"]},
            assign={
                "status": "{% $states.result.Snapshots[0].State %}",
                **_look("the snapshot did not become complete"),
            },
            then="IsSnapshotComplete",
        ),
        "IsSnapshotComplete": _choice(
            {
                '{% $status = "completed" %}': "TerminateInstance",
                '{% $failure = "" and $status = "pending" %}': "WaitForSnapshot",
            },
            otherwise="GiveSnapshotUp",
        ),
        "GiveSnapshotUp": {
            "Type": "Pass",
            "Assign": {"failure": '{% "the snapshot is " & $status & " and not complete" %}'},
            "Next": "TerminateInstance",
        },
    }


def _ending() -> dict[str, State]:
    """Terminate the instance in every case, and delete an incomplete snapshot."""
    return {
        "TerminateInstance": _call(
            "ec2:terminateInstances",
            {"InstanceIds": ["{% $instanceId %}"]},
            then="IsBaked",
            on_failure="InstanceLeft",
        ),
        "IsBaked": _choice(
            {'{% $failure = "" %}': "Baked", '{% $snapshotId != "" %}': "DeleteSnapshot"},
            otherwise="NotBaked",
        ),
        "DeleteSnapshot": _call(
            "ec2:deleteSnapshot",
            {"SnapshotId": "{% $snapshotId %}"},
            then="NotBaked",
            on_failure="SnapshotLeft",
        ),
        "Baked": {"Type": "Pass", "Output": {"snapshotId": "{% $snapshotId %}"}, "End": True},
        "NotBaked": {"Type": "Fail", "Error": "NotBaked", "Cause": "{% $failure %}"},
        "InstanceLeft": {
            "Type": "Fail",
            "Error": "InstanceLeft",
            "Cause": '{% $instanceId & " still runs, and is billed: " & $failure %}',
        },
        "SnapshotLeft": {
            "Type": "Fail",
            "Error": "SnapshotLeft",
            "Cause": '{% $snapshotId & " is incomplete, and is billed: " & $failure %}',
        },
    }


def _call(
    operation: str,
    arguments: Mapping[str, Any],
    *,
    then: str,
    assign: Mapping[str, str | int] | None = None,
    on_failure: str = "TerminateInstance",
    attempts: int = _CALL_ATTEMPTS,
) -> State:
    """Call an AWS API operation with retries, and store the reason of a failure."""
    service, name = operation.split(":")
    state: State = {
        "Type": "Task",
        "Resource": f"arn:aws:states:::aws-sdk:{service}:{name}",
        "Arguments": dict(arguments),
        "Retry": [
            {
                "ErrorEquals": ["States.TaskFailed"],
                "IntervalSeconds": _LOOK_SECONDS,
                "MaxAttempts": attempts,
                "BackoffRate": 1,
            }
        ],
        "Catch": [
            {
                "ErrorEquals": ["States.ALL"],
                "Assign": {
                    "failure": (
                        '{% ($failure = "" ? "" : $failure & "; ") & '
                        f'"{name}: " & $states.errorOutput.Error & " " & $states.errorOutput.Cause %}}'
                    )
                },
                "Next": on_failure,
            }
        ],
        "Next": then,
    }
    return state | {"Assign": dict(assign)} if assign else state


def _look(what_failed: str) -> dict[str, str | int]:
    """Count the status checks, and fail when there were too many."""
    return {
        "looks": "{% $looks + 1 %}",
        "failure": f'{{% $looks < {_MAX_LOOKS} ? "" : "{what_failed}" %}}',
    }


def _wait(then: str) -> State:
    return {"Type": "Wait", "Seconds": _LOOK_SECONDS, "Next": then}


def _choice(conditions: Mapping[str, str], *, otherwise: str) -> State:
    """Go to the state of the first condition that is true."""
    choices = [{"Condition": condition, "Next": then} for condition, then in conditions.items()]
    return {"Type": "Choice", "Choices": choices, "Default": otherwise}


def _data_volume() -> dict[str, Any]:
    return {"VolumeSize": "{% $sizeGib %}", **_DATA_VOLUME_SPEED}


def _volume(device: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a volume that is encrypted with the account's default key, as the volumes of nodes are."""
    ebs = {"DeleteOnTermination": True, "Encrypted": True, "VolumeType": "gp3", **(fields or {})}
    return {"DeviceName": device, "Ebs": ebs}


def _tags(*tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Return tags in EC2's format, including the pool's tag."""
    together = {key: value for each in tags for key, value in each.items()} | {POOL_TAG: "{% $pool %}"}
    return [{"Key": key, "Value": value} for key, value in together.items()]
