"""Names of log groups that AWS services choose."""

from __future__ import annotations


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
