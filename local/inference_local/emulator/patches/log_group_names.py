"""Refuses a log group that exists already, and lets EKS create that of a control plane, as AWS does."""

from collections.abc import Mapping
from typing import Any

from ministack.services import cloudwatch_logs, eks
from ministack.services.cloudformation import provisioners
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_local.emulator.refusals import LOG_GROUP_EXISTS

_TYPE = "AWS::Logs::LogGroup"
_PLAIN_CREATE = provisioners._cwlogs_create
_PLAIN_CREATE_CLUSTER = eks._create_cluster


def _create(logical_id: str, properties: Mapping[str, Any], stack: str) -> Any:
    """Create a group with a new name."""
    name = properties.get("LogGroupName")
    if name in cloudwatch_logs._log_groups:
        raise LOG_GROUP_EXISTS.error(name=str(name))
    return _PLAIN_CREATE(logical_id, properties, stack)


def _create_cluster(body: Mapping[str, Any], *arguments: Any) -> Any:
    """Create a cluster. Its control plane writes at once, so its log group exists."""
    answer = _PLAIN_CREATE_CLUSTER(body, *arguments)
    kinds = (body.get("logging") or {}).get("clusterLogging", ())
    group = f"/aws/eks/{body.get('name')}/cluster"
    if any(each.get("enabled") for each in kinds) and group not in cloudwatch_logs._log_groups:
        cloudwatch_logs._create_log_group({"logGroupName": group})
    return answer


def apply() -> None:
    """Apply the patch."""
    provisioners._cwlogs_create = _create
    _RESOURCE_HANDLERS[_TYPE]["create"] = _create
    eks._create_cluster = _create_cluster
