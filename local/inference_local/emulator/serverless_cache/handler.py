"""`AWS::ElastiCache::ServerlessCache`: a Valkey with the permissions of the template's users."""

from __future__ import annotations

import contextvars
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ministack.core.iam_evaluator import ResolvedCredential, resolve_credential
from ministack.core.responses import get_account_id, get_region
from ministack.services import elasticache

from inference_local.control_plane.certificates import Authority
from inference_local.emulator.resource_handlers.registry import Made, ResourceRequest, register
from inference_local.emulator.serverless_cache import AUTHORITY_FILE, RESOURCE_TYPE
from inference_local.emulator.serverless_cache.front import LOOPBACK, Front, TokenCheck
from inference_local.emulator.serverless_cache.valkey_server import ValkeyServer

#: Read by `signals.connection` in Lambda functions, which inherit this process's environment.
AUTHORITY_VARIABLE: Final = "SIGNALS_AUTHORITY"


class ServerlessCacheHandler:
    """Starts and ends caches.

    directory: Folder for the caches and for the certificate of their authority.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._authority: Authority | None = None
        self._running: dict[str, tuple[Front, ExitStack]] = {}

    def create(self, request: ResourceRequest) -> Made:
        """Start a cache."""
        name = request.properties["ServerlessCacheName"]
        if name in self._running:
            raise ValueError(f"serverless cache {name} already exists")
        if self._authority is None:
            self._authority = Authority(self._directory)
        with ExitStack() as stack:
            admission = _Admission(name, request.properties["UserGroupId"])
            front = stack.enter_context(Front(self._authority.issue(name), admission.admits))
            # It announces itself as the single node of a cluster, at the address of the proxy.
            settings = {
                "cluster-enabled": "yes",
                "cluster-announce-ip": LOOPBACK,
                "cluster-announce-port": str(front.port),
            }
            server = stack.enter_context(ValkeyServer(self._directory / name, settings))
            server.take_all_slots()
            admission.server = server
            front.behind = server.port
            self._running[name] = front, stack.pop_all()
        return self._made(name)

    def update(self, request: ResourceRequest) -> Made:
        """Do nothing: limits are not emulated, and users are looked up at each connection."""
        return self._made(request.properties["ServerlessCacheName"])

    def delete(self, request: ResourceRequest) -> None:
        """End a cache, and delete its data."""
        _, stack = self._running.pop(request.properties["ServerlessCacheName"])
        stack.close()

    def _made(self, name: str) -> Made:
        port = str(self._running[name][0].port)
        return name, {
            "ARN": f"arn:aws:elasticache:{get_region()}:{get_account_id()}:serverlesscache:{name}",
            "Endpoint.Address": LOOPBACK,
            "Endpoint.Port": port,
            "ReaderEndpoint.Address": LOOPBACK,
            "ReaderEndpoint.Port": port,
        }


class _Admission:
    """Authenticates connections to a cache with the emulator's current users and keys."""

    server: ValkeyServer

    def __init__(self, cache: str, user_group: str) -> None:
        self._tokens = TokenCheck(cache, _secret_of)
        self._user_group = user_group
        # The emulator's tables are per account and region, so these are those of the cache.
        self._context = contextvars.copy_context()

    def admits(self, user: str, token: str) -> bool:
        """Return whether a user is accepted, and set its permissions in Valkey."""
        return self._context.run(self._admits, user, token)

    def _admits(self, user: str, token: str) -> bool:
        group = elasticache._user_groups.get(self._user_group) or {}
        if user not in group.get("UserIds", ()) or not self._tokens.is_valid(user, token):
            return False
        rights = elasticache._users[user]["AccessString"].split()
        with self.server.client() as client:
            client.execute_command("ACL", "SETUSER", user, "reset", "nopass", *rights)
        return True


def _secret_of(key: str) -> str | None:
    found = resolve_credential(key)
    return found.secret_access_key if isinstance(found, ResolvedCredential) else None


def register_serverless_caches(directory: Path) -> None:
    """Register caches in the emulator's CloudFormation."""
    os.environ[AUTHORITY_VARIABLE] = str(directory / AUTHORITY_FILE)
    register(RESOURCE_TYPE, ServerlessCacheHandler(directory))
