"""Bearer tokens of Kubernetes groups, which stand for what access entries of EKS give to roles.

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#static-token-file
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path


class GroupTokens:
    """A token per group, of a user who is in no other group.

    path: File for the API server. It is created.
    """

    def __init__(self, path: Path, groups: Sequence[str]) -> None:
        self._path = path
        self._tokens = {group: secrets.token_urlsafe() for group in groups}
        path.touch(mode=0o600)
        path.write_text(
            "".join(f'{token},user of {group},{group},"{group}"\n' for group, token in self._tokens.items())
        )

    @property
    def flags(self) -> list[str]:
        """Flags with which the API server knows the tokens."""
        return [f"--token-auth-file={self._path}"]

    def of(self, group: str) -> str:
        """Return the token of a group."""
        return self._tokens[group]
