"""Tokens as AWS STS signs them for `GetWebIdentityToken`: ES384, with the claims of its documentation.

The emulator's STS signs with HS256 and one fixed key, which nothing may accept.
https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_providers_outbound_token_claims.html
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ISSUER: Final = "https://0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f.tokens.sts.global.api.aws"
#: Bytes of a number of P-384.
_NUMBER: Final = 48


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class TokenSigner:
    """The STS of an account."""

    def __init__(self, key_id: str = "EC384_0") -> None:
        self._key = ec.generate_private_key(ec.SECP384R1())
        self._key_id = key_id

    def key_set(self) -> dict[str, Any]:
        """Return what the issuer publishes."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_encoded(each.to_bytes(_NUMBER)) for each in (numbers.x, numbers.y))
        key = {"kty": "EC", "crv": "P-384", "kid": self._key_id, "use": "sig", "alg": "ES384", "x": x, "y": y}
        return {"keys": [key]}

    def token(self, principal: str, audience: str, *, seconds: int = 300, **claims: Any) -> str:
        """Return the token of a principal.

        principal: ARN of its role or user.
        """
        now = int(time.time())
        body = {
            "iss": ISSUER,
            "aud": audience,
            "sub": principal,
            "iat": now,
            "exp": now + seconds,
            "https://sts.amazonaws.com/": {"aws_account": principal.split(":")[4]},
            **claims,
        }
        return self.signed({"alg": "ES384", "kid": self._key_id, "typ": "JWT"}, body)

    def signed(self, header: Mapping[str, Any], body: Mapping[str, Any]) -> str:
        """Return a token with any header and body."""
        text = ".".join(_encoded(json.dumps(each).encode()) for each in (header, body))
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA384())))
        return f"{text}.{_encoded(r.to_bytes(_NUMBER) + s.to_bytes(_NUMBER))}"
