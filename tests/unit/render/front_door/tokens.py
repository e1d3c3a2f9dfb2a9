"""JSON Web Tokens and key sets, made with real keys."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER = "https://login.example.com"
AUDIENCE = "https://api.example.com"
#: A time long after this test runs, in seconds since 1970.
LATER = 4_102_444_800


def encoded(value: bytes | Mapping[str, Any]) -> str:
    """Return base64url without padding."""
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@cache
def private_key(name: str) -> rsa.RSAPrivateKey:
    """Return the same key for the same name."""
    assert name
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_pem(name: str) -> bytes:
    """Return the public key as text, which an attacker has too."""
    return (
        private_key(name)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def key_set(*names: str) -> dict[str, Any]:
    """Return the key set of an issuer."""
    return {"keys": [_public(name) for name in names]}


def _public(name: str) -> dict[str, str]:
    numbers = private_key(name).public_key().public_numbers()
    modulus = numbers.n.to_bytes(256, "big")
    return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": name, "n": encoded(modulus), "e": "AQAB"}


def token(key: str = "own", **claims: Any) -> str:
    """Return a token that is right but for the claims that are given. None takes a claim away."""
    body = {"iss": ISSUER, "aud": AUDIENCE, "sub": "me", "exp": LATER, "team": "search", **claims}
    kept = {name: value for name, value in body.items() if value is not None}
    return signed({"alg": "RS256", "kid": key}, kept, key)


def signed(header: Mapping[str, Any], claims: Mapping[str, Any], key: str) -> str:
    """Return a token with any header, signed by a key."""
    content = f"{encoded(header)}.{encoded(claims)}"
    signature = private_key(key).sign(content.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{content}.{encoded(signature)}"


def hashed(claims: Mapping[str, Any], secret: bytes) -> str:
    """Return a token that is signed with a shared secret."""
    content = f"{encoded({'alg': 'HS256', 'kid': 'own'})}.{encoded(claims)}"
    return f"{content}.{encoded(hmac.new(secret, content.encode(), hashlib.sha256).digest())}"


def unsigned(claims: Mapping[str, Any], algorithm: str) -> str:
    """Return a token without a signature."""
    return f"{encoded({'alg': algorithm})}.{encoded(claims)}."
