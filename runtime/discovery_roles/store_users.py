"""Users and roles of etcd, by its gateway for JSON.

etcd takes the common name of a client's certificate as its user, except in the gateway, which takes a token
for a password and refuses certificates that have a common name (etcd documentation, "Authentication" and
"Role-based access control"; etcd-io/etcd ``server/auth/store.go``, AuthInfoFromTLS). So the administrator's
certificate has none.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from typing import Any, Final

from inference_contracts.discovery_roles import ENTRIES, SHARED_CLIENT, key_ranges

_TIMEOUT_SECONDS: Final = 10
_ROOT: Final = "root"
_READ, _WRITE = "READ", "READWRITE"
#: Errors of etcd that the caller can act on (``api/v3rpc/rpctypes/error.go``).
_NOT_ENABLED: Final = "authentication is not enabled"


class DiscoveryStoreError(Exception):
    """A member that refuses a call or does not answer."""


class StoreUsers:
    """Users and roles of a store, by one of its members.

    endpoint: Address of the member, such as ``https://discovery-0.chat-discovery.internal:2379``.
    context: TLS context with the administrator's certificate.
    password: Password of the user ``root``.
    """

    def __init__(self, endpoint: str, context: ssl.SSLContext, password: str) -> None:
        self._endpoint = endpoint
        self._password = password
        self._token: str | None = None
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def apply(self, namespaces: Sequence[str]) -> list[str]:
        """Make what is missing, and turn authentication on; return a line for each change.

        Nothing is removed: a model that has left the blueprint runs on until its stack is deleted.

        namespaces: Namespaces of the deployments.
        Raises DiscoveryStoreError if the member refuses a call or does not answer.
        """
        enabled = self._sign_in()
        changes = list(self._make(_ROOT, [], password=self._password))
        if not enabled:
            # An earlier round may have ended between the user and the password of another secret.
            self._call("auth/user/changepw", {"name": _ROOT, "password": self._password})
        for namespace in namespaces:
            ranges = [(ENTRIES, _end(ENTRIES), _READ)]
            ranges += [(*each, _WRITE) for each in key_ranges(namespace)]
            changes += self._make(namespace, ranges)
        if not enabled:
            if self._has_entries():
                # Processes of an earlier release, which run on until their stacks are deployed again.
                changes += self._make(SHARED_CLIENT, [(ENTRIES, _end(ENTRIES), _WRITE)])
            self._call("auth/enable", {})
            changes.append("authentication is on")
        return changes

    def _sign_in(self) -> bool:
        """Get a token; return whether authentication is on."""
        try:
            answer = self._call("auth/authenticate", {"name": _ROOT, "password": self._password})
        except DiscoveryStoreError as error:
            if _NOT_ENABLED in str(error):
                return False
            raise
        self._token = str(answer["token"])
        return True

    def _make(
        self, name: str, ranges: Iterable[tuple[str, str, str]], *, password: str | None = None
    ) -> Iterable[str]:
        """Make what is missing of a role and its user. Each change makes etcd check its clients again."""
        if name not in self._call("auth/role/list", {}).get("roles", []):
            self._call("auth/role/add", {"name": name})
            yield f"new role {name}"
        permissions = self._call("auth/role/get", {"role": name}).get("perm", []) if name != _ROOT else []
        known = {(each["key"], each.get("range_end"), each.get("permType", _READ)) for each in permissions}
        for first, end, kind in ranges:
            if (_coded(first), _coded(end), kind) not in known:
                permission = {"permType": kind, "key": _coded(first), "range_end": _coded(end)}
                self._call("auth/role/grant", {"name": name, "perm": permission})
                yield f"role {name}: {kind} from {first} to {end}"
        if name not in self._call("auth/user/list", {}).get("users", []):
            own = {"password": password} if password else {"options": {"no_password": True}}
            self._call("auth/user/add", {"name": name, **own})
            yield f"new user {name}"
        if name not in self._call("auth/user/get", {"name": name}).get("roles", []):
            self._call("auth/user/grant", {"user": name, "role": name})

    def _has_entries(self) -> bool:
        body = {"key": _coded(ENTRIES), "range_end": _coded(_end(ENTRIES)), "limit": 1, "keys_only": True}
        return bool(self._call("kv/range", body).get("kvs"))

    def _call(self, path: str, body: Any) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the addresses are those of the stack
            f"{self._endpoint}/v3/{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": self._token} if self._token else {},
        )
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                return dict(json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace").strip()
            raise DiscoveryStoreError(f"{self._endpoint}: {path}: {error.code} {text}") from error
        except (OSError, ValueError) as error:
            raise DiscoveryStoreError(f"{self._endpoint}: {path}: {error}") from error


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _end(prefix: str) -> str:
    """Return the first key after all keys with a prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
