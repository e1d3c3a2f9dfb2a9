"""Properties of CloudFormation as parameters of ECS: nothing is lost where capital letters differ."""

from __future__ import annotations

from inference_local.emulator.resource_handlers.registry import api_parameters


def test_volumes_on_efs_keep_their_file_system() -> None:
    # Names of the CloudFormation Template Reference, AWS::ECS::TaskDefinition Volume.
    volume = {
        "Name": "data",
        "EFSVolumeConfiguration": {
            "FilesystemId": "fs-1",
            "TransitEncryption": "ENABLED",
            "AuthorizationConfig": {"AccessPointId": "fsap-1", "IAM": "ENABLED"},
        },
    }
    found = api_parameters("ecs", "RegisterTaskDefinition", {"Family": "member", "Volumes": [volume]})
    assert found == {
        "family": "member",
        "volumes": [
            {
                "name": "data",
                "efsVolumeConfiguration": {
                    "fileSystemId": "fs-1",
                    "transitEncryption": "ENABLED",
                    "authorizationConfig": {"accessPointId": "fsap-1", "iam": "ENABLED"},
                },
            }
        ],
    }


def test_numbers_and_switches_get_their_types_and_maps_stay() -> None:
    container = {
        "Name": "main",
        "Memory": "64",
        "Essential": "false",
        "LogConfiguration": {"LogDriver": "awslogs", "Options": {"awslogs-group": "/x", "Mode": 1}},
    }
    found = api_parameters("ecs", "RegisterTaskDefinition", {"ContainerDefinitions": [container]})
    assert found["containerDefinitions"] == [
        {
            "name": "main",
            "memory": 64,
            "essential": False,
            "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/x", "Mode": "1"}},
        }
    ]


def test_tags_that_a_call_takes_as_a_map_become_one() -> None:
    found = api_parameters(
        "application-autoscaling",
        "RegisterScalableTarget",
        {"MinCapacity": "1", "Tags": [{"Key": "platform", "Value": "chat"}], "ScheduledActions": []},
    )
    assert found == {"MinCapacity": 1, "Tags": {"platform": "chat"}}
