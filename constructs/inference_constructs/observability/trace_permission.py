"""The permission of an agent that sends traces to X-Ray."""

from __future__ import annotations

from inference_constructs.policy_statements import Statement


def send_traces() -> Statement:
    """Return the statement. It is no ``grant_…``, which would take a grantee. Neither action has resources.

    The actions are those of the managed policy AWSXRayDaemonWriteAccess that an agent without sampling rules
    of X-Ray calls; Service Authorization Reference, "Actions, resources, and condition keys for AWS X-Ray".
    """
    return {
        "Sid": "SendTraces",
        "Effect": "Allow",
        "Action": ["xray:PutTelemetryRecords", "xray:PutTraceSegments"],
        "Resource": ["*"],
    }
