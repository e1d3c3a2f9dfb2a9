"""Permissions of the state machine that bakes images.

They are IAM JSON and not CDK grants, because each statement has conditions on tags or on the launch template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference_catalog.image_cache import POOL_TAG, SNAPSHOTTER
from inference_catalog.tags import PLATFORM_TAG

# The commands on the instance that bakes images: a Systems Manager document, schema 2.2.
#
# The agent runs in Bottlerocket's control container, which reaches the host through the admin container
# (https://github.com/bottlerocket-os/bottlerocket#exploration). Callers cannot inject commands: the parameter
# accepts only image names, without characters that are special to a shell.

#: Time for the pulls, in seconds: a 20 GB image takes a few minutes.
_TIMEOUT_SECONDS = 7200
_PULL_ATTEMPTS = 3
_CTR = "admin ctr --address /run/containerd/containerd.sock --namespace k8s.io"

#: Image references, separated by single spaces (slightly wider than the grammar of distribution/reference).
IMAGES_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*( [A-Za-z0-9][A-Za-z0-9._:/@-]*)*$"

#: kubelet is stopped first, because it would delete images that no pod uses. With ``--local``, ctr unpacks
#: with the given snapshotter. The label marks the image for containerd's Kubernetes plug-in. The last line
#: but one deletes the compressed layers, as the settings of nodes do.
_SCRIPT = f"""\
set -eu
admin() {{ apiclient exec admin sheltie "$@"; }}
until apiclient exec admin true; do sleep 5; done
admin systemctl stop kubelet
for image in {{{{ Images }}}}; do
  attempt=1
  until {_CTR} images pull --local --snapshotter {SNAPSHOTTER} \
--label io.cri-containerd.image=managed "$image" > /dev/null; do
    if [ "$attempt" -ge {_PULL_ATTEMPTS} ]; then exit 1; fi
    attempt=$((attempt + 1))
    sleep 15
  done
  {_CTR} images check --snapshotter {SNAPSHOTTER} --quiet "name==$image" | grep -Fq "$image"
done
{_CTR} content prune references
admin sync
"""


def pull_document() -> dict[str, Any]:
    """Return the document. Its only parameter, ``Images``, has image references separated by spaces."""
    return {
        "schemaVersion": "2.2",
        "description": "Pulls container images onto the data volume of a Bottlerocket instance",
        "parameters": {
            "Images": {
                "type": "String",
                "description": "Image references, parted by single spaces",
                "allowedPattern": IMAGES_PATTERN,
            }
        },
        "mainSteps": [
            {
                "action": "aws:runShellScript",
                "name": "PullImages",
                "inputs": {
                    "timeoutSeconds": str(_TIMEOUT_SECONDS),
                    "runCommand": _SCRIPT.splitlines(),
                },
            }
        ],
    }


Statement = Mapping[str, Any]


@dataclass(frozen=True)
class BakerScope:
    """Resources and tags that limit the permissions."""

    partition: str
    region: str
    account: str
    """`partition`, `region`, `account`: Location of all resources."""
    platform: str
    """Value of the platform's tag."""
    launch_template_arns: Sequence[str]
    """The only allowed launch templates."""
    instance_role_arn: str
    """The only role that instances may have."""
    document_arn: str
    """The only Systems Manager document that may be run on instances."""
    image_parameter_arns: Sequence[str]
    """Public parameters that contain the ID of the AMI."""
    subnet_id: str
    security_group_id: str
    """`subnet_id`, `security_group_id`: Subnet and security group of the instances."""

    def ec2_arn(self, kind: str, name: str = "*", *, account: str | None = None) -> str:
        """ARN of one EC2 resource or of all resources of a kind, which conditions limit further."""
        owner = self.account if account is None else account
        return f"arn:{self.partition}:ec2:{self.region}:{owner}:{kind}/{name}"

    def tagged(self, source: str) -> dict[str, Any]:
        """Condition that ``aws:ResourceTag`` or ``aws:RequestTag`` has the values of a bake."""
        return {
            "StringEquals": {f"{source}/{PLATFORM_TAG}": self.platform},
            "StringLike": {f"{source}/{POOL_TAG}": "*"},
        }


def baker_statements(scope: BakerScope) -> tuple[Statement, ...]:
    """Return the statements. They cover only the given launch templates and resources with a bake's tags.

    scope: Resources and tags that limit the permissions.
    """
    snapshots = scope.ec2_arn("snapshot", account="")
    from_template = {"ArnEquals": {"ec2:LaunchTemplate": list(scope.launch_template_arns)}}
    return (
        _allow(
            "ec2:RunInstances",
            [
                *scope.launch_template_arns,
                scope.ec2_arn("subnet", scope.subnet_id),
                scope.ec2_arn("security-group", scope.security_group_id),
                scope.ec2_arn("network-interface"),
                scope.ec2_arn("image", account=""),
            ],
            from_template,
        ),
        _allow(
            "ec2:RunInstances",
            [scope.ec2_arn("instance"), scope.ec2_arn("volume")],
            {**from_template, **scope.tagged("aws:RequestTag")},
        ),
        _allow(
            "ec2:CreateTags",
            [scope.ec2_arn("instance"), scope.ec2_arn("volume"), snapshots],
            {"StringEquals": {"ec2:CreateAction": ["RunInstances", "CreateSnapshot"]}},
        ),
        _allow(
            ["ec2:StopInstances", "ec2:TerminateInstances"],
            scope.ec2_arn("instance"),
            scope.tagged("aws:ResourceTag"),
        ),
        _allow("ec2:CreateSnapshot", scope.ec2_arn("volume"), scope.tagged("aws:ResourceTag")),
        _allow("ec2:CreateSnapshot", snapshots, scope.tagged("aws:RequestTag")),
        _allow("ec2:DeleteSnapshot", snapshots, scope.tagged("aws:ResourceTag")),
        _allow(
            ["ec2:DescribeInstances", "ec2:DescribeSnapshots"],
            "*",
            {"StringEquals": {"aws:RequestedRegion": scope.region}},
        ),
        _allow("ssm:SendCommand", scope.document_arn),
        _allow("ssm:SendCommand", scope.ec2_arn("instance"), scope.tagged("aws:ResourceTag")),
        _allow("ssm:GetCommandInvocation", "*", {"StringEquals": {"aws:RequestedRegion": scope.region}}),
        _allow(["ssm:GetParameter", "ssm:GetParameters"], list(scope.image_parameter_arns)),
        _allow(
            "iam:PassRole",
            scope.instance_role_arn,
            {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        ),
    )


def log_delivery_statement() -> Statement:
    """Return the permissions for a state machine's log. These actions have no resource types.

    Source: https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html.
    """
    actions = [
        "logs:CreateLogDelivery",
        "logs:DeleteLogDelivery",
        "logs:DescribeLogGroups",
        "logs:DescribeResourcePolicies",
        "logs:GetLogDelivery",
        "logs:ListLogDeliveries",
        "logs:PutResourcePolicy",
        "logs:UpdateLogDelivery",
    ]
    return _allow(actions, "*")


def _allow(
    actions: str | list[str], resources: str | list[str], conditions: Mapping[str, Any] | None = None
) -> Statement:
    statement = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return statement | {"Condition": conditions} if conditions else statement
