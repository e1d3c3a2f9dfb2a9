"""Names of log groups that AWS services choose or expect."""

from __future__ import annotations

#: Days for which a log group may keep its events ("PutRetentionPolicy", Amazon CloudWatch Logs API Reference,
#: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html).
RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)


def control_plane_log_group(cluster_name: str) -> str:
    """Return the log group to which EKS writes the logs of a control plane.

    Source: Amazon EKS User Guide, "Send control plane logs to CloudWatch Logs"
    (https://docs.aws.amazon.com/eks/latest/userguide/control-plane-logs.html).

    Parameters
    ----------
    cluster_name
        Name of the cluster.
    """
    return f"/aws/eks/{cluster_name}/cluster"


def container_log_group(cluster_name: str, kind: str) -> str:
    """Return the log group to which the CloudWatch observability add-on sends one kind of log.

    Source: aws-observability/helm-charts v6.4.0, charts/amazon-cloudwatch-observability/values.yaml,
    `containerLogs.fluentBit.config.extraFiles`.

    Parameters
    ----------
    cluster_name
        Name of the cluster.
    kind
        ``application``, ``dataplane`` or ``host``.
    """
    return f"/aws/containerinsights/{cluster_name}/{kind}"


def canary_log_group(platform: str) -> str:
    """Return the name of the log group of the canary.

    Parameters
    ----------
    platform
        `metadata.name`.
    """
    return f"/inference-blueprints/{platform}/canary"


def model_log_group(platform: str, model: str) -> str:
    """Return the name of the log group of a model's tasks on ECS.

    Parameters
    ----------
    platform
        `metadata.name`.
    model
        Name of the model.
    """
    return f"/inference-blueprints/{platform}/models/{model}"


def controller_log_group(platform: str, function: str) -> str:
    """Return the name of the log group of a function of the Operations stack.

    Parameters
    ----------
    platform
        `metadata.name`.
    function
        What the function does, such as ``health-minute``.
    """
    return f"/inference-blueprints/{platform}/operations/{function}"


def state_machine_log_group(platform: str, name: str) -> str:
    """Return the name of a state machine's log group.

    Step Functions adds each other log group to a resource policy that the whole account and region share and
    that ends at 5,120 characters. Then no state machine with a log can be created. CloudWatch Logs allows
    this prefix as a whole ("Avoiding Amazon CloudWatch Logs resource policy size restrictions",
    https://docs.aws.amazon.com/step-functions/latest/dg/bp-cwl.html).

    Parameters
    ----------
    platform
        `metadata.name`.
    name
        What the state machine does, such as ``batch``.
    """
    return f"/aws/vendedlogs/states/{platform}-{name}"


def kafka_log_group(cluster_name: str) -> str:
    """Return the log group of the brokers of a Kafka cluster, with a prefix as that of state machines.

    Parameters
    ----------
    cluster_name
        Name of the cluster.
    """
    return f"/aws/vendedlogs/msk/{cluster_name}"


def flink_log_group(application: str) -> str:
    """Return the log group of an application on Managed Service for Apache Flink.

    Source: "Set up application logging in Managed Service for Apache Flink"
    (https://docs.aws.amazon.com/managed-flink/latest/java/cloudwatch-logs.html).

    Parameters
    ----------
    application
        Name of the application.
    """
    return f"/aws/kinesis-analytics/{application}"
