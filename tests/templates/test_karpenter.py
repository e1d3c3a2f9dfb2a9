"""Karpenter's rights, word for word, and its interruption queue."""

from __future__ import annotations

from typing import Any

from tests.templates.support import Templates, statements, text

EC2 = "arn:aws:ec2:us-west-2"
OWNED_RESOURCE = {"aws:ResourceTag/kubernetes.io/cluster/try": "owned"}
OWNED_REQUEST = {
    "aws:RequestTag/kubernetes.io/cluster/try": "owned",
    "aws:RequestTag/eks:eks-cluster-name": "try",
}
NODEPOOL_ON_RESOURCE = {"aws:ResourceTag/karpenter.sh/nodepool": "*"}
NODEPOOL_ON_REQUEST = {"aws:RequestTag/karpenter.sh/nodepool": "*"}
CLASS_ON_RESOURCE = {"aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*"}
CLASS_ON_REQUEST = {"aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*"}
REGION_ON_RESOURCE = {"aws:ResourceTag/topology.kubernetes.io/region": "us-west-2"}
REGION_ON_REQUEST = {"aws:RequestTag/topology.kubernetes.io/region": "us-west-2"}
PROFILES = "arn:aws:iam::${AWS::AccountId}:instance-profile/*"
CLUSTER = "arn:aws:eks:us-west-2:${AWS::AccountId}:cluster/try"
LAUNCHED = [
    f"{EC2}:*:{kind}/*"
    for kind in (
        "fleet",
        "instance",
        "volume",
        "network-interface",
        "launch-template",
        "spot-instances-request",
    )
]

#: Sid to actions, resources and conditions.
EXPECTED: dict[str, tuple[Any, Any, Any]] = {
    "AllowScopedEC2InstanceAccessActions": (
        ["ec2:RunInstances", "ec2:CreateFleet"],
        [
            f"{EC2}::image/*",
            f"{EC2}::snapshot/*",
            f"{EC2}:*:security-group/*",
            f"{EC2}:*:subnet/*",
            f"{EC2}:*:capacity-reservation/*",
            f"{EC2}:*:placement-group/*",
        ],
        None,
    ),
    "AllowScopedEC2LaunchTemplateAccessActions": (
        ["ec2:RunInstances", "ec2:CreateFleet"],
        [f"{EC2}:*:launch-template/*"],
        {"StringEquals": OWNED_RESOURCE, "StringLike": NODEPOOL_ON_RESOURCE},
    ),
    "AllowScopedEC2InstanceActionsWithTags": (
        ["ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"],
        LAUNCHED,
        {"StringEquals": OWNED_REQUEST, "StringLike": NODEPOOL_ON_REQUEST},
    ),
    "AllowScopedResourceCreationTagging": (
        "ec2:CreateTags",
        LAUNCHED,
        {
            "StringEquals": {
                **OWNED_REQUEST,
                "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
            },
            "StringLike": NODEPOOL_ON_REQUEST,
        },
    ),
    "AllowScopedResourceTagging": (
        "ec2:CreateTags",
        [f"{EC2}:*:instance/*"],
        {
            "StringEquals": OWNED_RESOURCE,
            "StringLike": NODEPOOL_ON_RESOURCE,
            "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": "try"},
            "ForAllValues:StringEquals": {
                "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
            },
        },
    ),
    "AllowScopedDeletion": (
        ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
        [f"{EC2}:*:instance/*", f"{EC2}:*:launch-template/*"],
        {"StringEquals": OWNED_RESOURCE, "StringLike": NODEPOOL_ON_RESOURCE},
    ),
    "AllowPassingInstanceRole": (
        "iam:PassRole",
        "${KarpenterNodeRole.Arn}",
        {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
    ),
    "AllowScopedInstanceProfileCreationActions": (
        "iam:CreateInstanceProfile",
        PROFILES,
        {"StringEquals": {**OWNED_REQUEST, **REGION_ON_REQUEST}, "StringLike": CLASS_ON_REQUEST},
    ),
    "AllowScopedInstanceProfileTagActions": (
        "iam:TagInstanceProfile",
        PROFILES,
        {
            "StringEquals": {**OWNED_RESOURCE, **REGION_ON_RESOURCE, **OWNED_REQUEST, **REGION_ON_REQUEST},
            "StringLike": {**CLASS_ON_RESOURCE, **CLASS_ON_REQUEST},
        },
    ),
    "AllowScopedInstanceProfileActions": (
        ["iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"],
        PROFILES,
        {"StringEquals": {**OWNED_RESOURCE, **REGION_ON_RESOURCE}, "StringLike": CLASS_ON_RESOURCE},
    ),
    "AllowAPIServerEndpointDiscovery": ("eks:DescribeCluster", CLUSTER, None),
    "AllowInterruptionQueueActions": (
        ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
        "${KarpenterQueue.Arn}",
        None,
    ),
    "AllowZonalShiftStatusReadOnly": (
        "arc-zonal-shift:GetManagedResource",
        "*",
        {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": CLUSTER}},
    ),
    "AllowRegionalReadActions": (
        [
            "ec2:DescribeCapacityReservations",
            "ec2:DescribeImages",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribePlacementGroups",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSpotPriceHistory",
            "ec2:DescribeSubnets",
        ],
        "*",
        {"StringEquals": {"aws:RequestedRegion": "us-west-2"}},
    ),
    "AllowSSMReadActions": ("ssm:GetParameter", "arn:aws:ssm:us-west-2::parameter/aws/service/*", None),
    "AllowPricingReadActions": ("pricing:GetProducts", "*", None),
    "AllowUnscopedInstanceProfileListAction": ("iam:ListInstanceProfiles", "*", None),
    "AllowInstanceProfileReadActions": ("iam:GetInstanceProfile", PROFILES, None),
}


def test_rights(base_templates: Templates) -> None:
    policies = base_templates.resources("AWS::IAM::ManagedPolicy", "Cluster")
    assert len(policies) == 6
    found = {
        statement["Sid"]: (statement["Action"], _resources(statement), _conditions(statement))
        for policy in policies
        for statement in statements(policy)
    }
    assert found == EXPECTED


def test_all_six_policies_are_attached_to_the_controller(base_templates: Templates) -> None:
    (controller,) = [
        role
        for role in base_templates.properties("AWS::IAM::Role", "Cluster")
        if len(role.get("ManagedPolicyArns", [])) == 6
    ]
    (statement,) = controller["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]


def test_the_queue_forgets_after_five_minutes_and_is_encrypted(base_templates: Templates) -> None:
    queue = base_templates.only("AWS::SQS::Queue")
    assert (queue["MessageRetentionPeriod"], queue["SqsManagedSseEnabled"]) == (300, True)


def test_every_warning_reaches_the_queue(base_templates: Templates) -> None:
    rules = base_templates.properties("AWS::Events::Rule")
    assert {
        (rule["EventPattern"]["source"][0], rule["EventPattern"]["detail-type"][0]) for rule in rules
    } == {
        ("aws.health", "AWS Health Event"),
        ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
        ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
        ("aws.ec2", "EC2 Instance State-change Notification"),
        ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
    }
    assert {_masked(rule["Targets"][0]["Arn"]) for rule in rules} == {"${KarpenterQueue.Arn}"}


def test_only_those_rules_may_send(base_templates: Templates) -> None:
    (policy,) = base_templates.resources("AWS::SQS::QueuePolicy")
    (allowed,) = [statement for statement in statements(policy) if statement["Effect"] == "Allow"]
    assert allowed["Principal"] == {"Service": "events.amazonaws.com"}
    assert len(allowed["Condition"]["ArnEquals"]["aws:SourceArn"]) == 5


def _resources(statement: dict[str, Any]) -> Any:
    resources = statement["Resource"]
    return [_masked(each) for each in resources] if isinstance(resources, list) else _masked(resources)


def _conditions(statement: dict[str, Any]) -> Any:
    return (
        {
            operator: {key: value if isinstance(value, list) else text(value) for key, value in keys.items()}
            for operator, keys in statement["Condition"].items()
        }
        if "Condition" in statement
        else None
    )


def _masked(value: Any) -> str:
    """Spell a reference without the hash that ends its logical id."""
    spelled = text(value)
    for name in ("KarpenterNodeRole", "KarpenterQueue"):
        if spelled.startswith("${" + name):
            return "${" + name + ".Arn}"
    return spelled
