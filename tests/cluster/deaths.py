"""Processes of controllers that die right after a change, of the cluster or of AWS."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.client import BaseClient

from operations import aws_clients
from operations.kubernetes_api import KubernetesApi
from tests.runtime.gpu_health.world import KilledError


@dataclass
class Deaths:
    """Ends the process of a function right after each of its changes, once for each, while it is active."""

    after: list[str] = field(default_factory=list)
    """Changes in words, in their order."""
    active: bool = False
    messages: list[str] = field(default_factory=list)
    """What people were told."""

    def changed(self, what: str) -> None:
        if self.active and what not in self.after:
            self.after.append(what)
            raise KilledError

    def survived(self, act: Callable[[], object]) -> bool:
        """Call a function with new clients of AWS, and return whether its process lived on."""
        aws_clients.client.cache_clear()
        aws_clients.resource.cache_clear()
        try:
            act()
        except KilledError:
            return False
        return True


def intercept(patch: pytest.MonkeyPatch, deaths: Deaths) -> None:
    """Notice each change after it was made, until the patch is undone."""
    plain_aws, plain_api = BaseClient._make_api_call, KubernetesApi._ask

    def aws(client: Any, operation: str, parameters: Any) -> Any:
        if operation == "DescribeAlarmContributors":  # moto has none
            return {"AlarmContributors": []}
        answer = plain_aws(client, operation, parameters)
        if operation == "Publish":
            deaths.messages.append(parameters["Message"])
        if operation == "TransactWriteItems":
            item = parameters["TransactItems"][0]["Put"]["Item"]
            record = json.loads(item["record"])
            # Of a case its state, of places who holds them. The state of the shift is another one each time.
            what = record.get("held", record["state"] if "node" in record else "")
            deaths.changed(f"{item['entry'].partition('#')[0]} {what}".strip())
        if operation == "PutItem":
            deaths.changed(f"PutItem {parameters['TableName']}")
        return answer

    def api(client: Any, method: str, path: str, *arguments: Any, **named: Any) -> Any:
        answer = plain_api(client, method, path, *arguments, **named)
        if method != "GET":
            deaths.changed(f"{method} {path.rpartition('/')[0].rpartition('/')[2]}")
        return answer

    patch.setattr(BaseClient, "_make_api_call", aws)
    patch.setattr(KubernetesApi, "_ask", api)
