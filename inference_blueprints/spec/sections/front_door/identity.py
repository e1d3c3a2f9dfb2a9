"""Rules on how callers of the front door identify themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import Path, duplicates, listing, quote
from inference_contracts.errors import Finding

#: Bytes of a policy of a table
#: (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-considerations.html).
MAX_POLICY_BYTES: Final = 20 * 1024
# The statement without its principals, and quotes and a comma of each.
_POLICY_BYTES: Final = 200
_QUOTED: Final = 3
_IDENTITY: Path = ("spec", "frontDoor", "identity")
#: Issuer of an account ("GetOutboundWebIdentityFederationInfo", IAM API Reference).
_STS_ISSUER: Final = re.compile(r"https://[0-9A-Za-z-]+\.tokens\.sts\.[a-z0-9.-]+")
#: Algorithms by the type of the key. Envoy's `jwt_authn` also takes those with a shared secret (HS256 and so
#: on), which are left out: whoever knows the secret of an inline key set could sign tokens
#: (https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/http/http_filters/jwt_authn_filter).
_ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        "EC": ("ES256", "ES384", "ES512"),
        "OKP": ("EdDSA",),
    }
)
#: Members of a public key (RFC 7518, 6.2.1 and 6.3.1; RFC 8037, 2).
_PUBLIC: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
)
#: Members of a private or a shared key (RFC 7518, 6.2.2, 6.3.2 and 6.4.1; RFC 8037, 2).
_SECRET: Final = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
_CURVES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"EC": ("P-256", "P-384", "P-521"), "OKP": ("Ed25519",)}
)
#: Shortest modulus of an RSA key (NIST SP 800-131A, section 3), in bits.
_LEAST_RSA_BITS: Final = 2048
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]+")


@rule
def callers_can_identify_themselves(spec: Spec) -> Iterator[Finding]:
    """Check that there is a way to identify oneself."""
    if spec.front_door is None:
        return
    identity = spec.front_door.identity
    if identity.api_keys is None and identity.iam is None and not identity.oidc:
        message = (
            "got none of 'apiKeys', 'iam' and 'oidc', so nobody may call; add one, such as 'apiKeys: {}'"
        )
        yield Finding(_IDENTITY, message)


@rule
def issuers_have_keys(spec: Spec) -> Iterator[Finding]:
    """Check that the keys of an issuer are either fetched or given."""
    for index, issuer in usable(spec.front_door.identity.oidc if spec.front_door else ()):
        path = (*_IDENTITY, "oidc", index)
        if issuer.keys is not None and issuer.keys_url is not None:
            yield Finding((*path, "keys"), "got 'keys' and 'keysUrl', expected one of them; remove one")
        if issuer.keys is None and issuer.keys_url is None:
            message = (
                "has neither 'keysUrl' nor 'keys', so no signature can be checked; add the address of its "
                "key set ('jwks_uri' of its OpenID configuration), or the key set"
            )
            yield Finding(path, message)


@rule
def issuers_differ(spec: Spec) -> Iterator[Finding]:
    """Check that an issuer stands once: a token says only who issued it."""
    found = list(_issuers(spec))
    for index, _ in duplicates(address.rstrip("/") for _, address in found):
        message = (
            f"got {quote(found[index][1])} again, and a token does not say which entry it belongs to; state "
            "each issuer once"
        )
        yield Finding((*found[index][0], "issuer"), message)


@rule
def key_sets_are_public(spec: Spec) -> Iterator[Finding]:
    """Check that inline key sets have public keys only, of kinds that can be checked."""
    for path, keys in _key_sets(spec):
        for below, message in _key_set_faults(keys):
            yield Finding((*path, "keys", *below), message)


@rule
def accounts_are_issuers_of_sts(spec: Spec) -> Iterator[Finding]:
    """Check that only AWS STS says which IAM principal calls."""
    identity = spec.front_door.identity if spec.front_door else None
    for index, account in usable(identity.iam.accounts if identity and identity.iam else ()):
        if not _STS_ISSUER.fullmatch(account.issuer.rstrip("/")):
            message = (
                f"got {quote(account.issuer)}, expected the issuer of an AWS account such as "
                "'https://0a1b2c3d-0000-4000-8000-000000000000.tokens.sts.global.api.aws'; run 'aws iam "
                "get-outbound-web-identity-federation-info', or add other issuers under 'oidc'"
            )
            yield Finding((*_IDENTITY, "iam", "accounts", index, "issuer"), message)


@rule
def principals_may_call(spec: Spec) -> Iterator[Finding]:
    """Check that some team has IAM principals if these may call the front door."""
    identity = spec.front_door.identity if spec.front_door else None
    teams = [team for _, team in usable(spec.teams)]
    if identity and identity.iam and teams and not any(team.principals for team in teams):
        message = (
            "no team has 'principals', so a token of AWS STS belongs to nobody; add the ARNs of the callers "
            "to their teams, or remove 'iam'"
        )
        yield Finding((*_IDENTITY, "iam"), message)


@rule
def accounts_are_those_of_the_principals(spec: Spec) -> Iterator[Finding]:
    """Warn of principals of more accounts than have an issuer: each account has its own."""
    identity = spec.front_door.identity if spec.front_door else None
    if identity is None or identity.iam is None:
        return
    accounts = {arn.split(":")[4] for _, team in usable(spec.teams) for _, arn in usable(team.principals)}
    issuers = len(identity.iam.accounts)
    if len(accounts) > issuers:
        message = (
            f"the teams have principals of {len(accounts)} accounts ({listing(sorted(accounts))}), and here "
            f"are the issuers of {issuers}; tokens of the others are refused, so add the issuer of each "
            "account"
        )
        yield Finding((*_IDENTITY, "iam", "accounts"), message, "warning")


@rule
def principals_fit_a_policy(spec: Spec) -> Iterator[Finding]:
    """Check that the policy of the table of keys can deny it to all principals of teams."""
    door = spec.front_door
    if door is None or door.identity.api_keys is None:
        return
    principals = {arn for _, team in usable(spec.teams) for arn in team.principals}
    size = _POLICY_BYTES + sum(len(arn) + _QUOTED for arn in principals)
    if size > MAX_POLICY_BYTES:
        message = (
            f"got {len(principals)} principals, which need a policy of {size:,} bytes for the table of API "
            f"keys; DynamoDB allows {MAX_POLICY_BYTES:,}: use roles that several people share"
        )
        yield Finding(("spec", "teams"), message)


def _issuers(spec: Spec) -> Iterator[tuple[Path, str]]:
    """Yield all issuers with their place."""
    identity = spec.front_door.identity if spec.front_door else None
    if identity is None:
        return
    for index, issuer in usable(identity.oidc):
        yield (*_IDENTITY, "oidc", index), issuer.issuer
    for index, account in usable(identity.iam.accounts if identity.iam else ()):
        yield (*_IDENTITY, "iam", "accounts", index), account.issuer


def _key_sets(spec: Spec) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield all inline key sets with the place of their issuer."""
    identity = spec.front_door.identity if spec.front_door else None
    if identity is None:
        return
    for index, issuer in usable(identity.oidc):
        if issuer.keys is not None:
            yield (*_IDENTITY, "oidc", index), issuer.keys
    for index, account in usable(identity.iam.accounts if identity.iam else ()):
        if account.keys is not None:
            yield (*_IDENTITY, "iam", "accounts", index), account.keys


def _key_set_faults(document: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with a key set (RFC 7517, 5), with the path below it."""
    keys = document.get("keys")
    if not isinstance(keys, list) or not keys:
        yield (), "is no key set; write '{keys: [...]}' with at least one public key (RFC 7517)"
        return
    for index, key in enumerate(keys):
        here = ("keys", index)
        if not isinstance(key, dict):
            yield here, f"got {quote(key)}, expected a key such as '{{kty: EC, crv: P-256, x: ..., y: ...}}'"
            continue
        yield from (((*here, *below), message) for below, message in _key_faults(key))
    named = [key["kid"] for key in keys if isinstance(key, dict) and isinstance(key.get("kid"), str)]
    if len(keys) > 1 and len(set(named)) < len(keys):
        yield (
            ("keys",),
            f"got {len(keys)} keys, of which {len(set(named))} have a 'kid' of their own; give each its "
            "'kid', "
            "by which a token names its key",
        )


def _key_faults(key: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with a key."""
    kind = key.get("kty")
    if kind == "oct":
        yield (
            ("kty",),
            "got 'oct', a secret that both sides share: whoever reads this file could sign tokens; let the "
            f"issuer sign with one of {listing(_ALGORITHMS)}",
        )
        return
    if not isinstance(kind, str) or kind not in _ALGORITHMS:
        yield ("kty",), f"got {quote(kind)}, expected one of {listing(_ALGORITHMS)}"
        return
    secret = [name for name in _SECRET if name in key]
    if secret:
        yield (
            (),
            f"has the private parts {listing(secret)}: this key can sign tokens and must not be in this "
            "file; "
            "replace it at the issuer, and write only the public parts",
        )
    yield from _use_faults(kind, key)
    for name in _PUBLIC[kind]:
        if name not in key:
            yield (), f"has no {quote(name)}, a part of the public key (RFC 7518); add it in quotes"
        elif name != "crv":
            yield from (((name,), message) for message in _number_faults(name, key[name]))


def _use_faults(kind: str, key: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with what a key is for."""
    algorithm = key.get("alg")
    if algorithm is not None and algorithm not in _ALGORITHMS[kind]:
        yield ("alg",), f"got {quote(algorithm)}, keys of type {kind} sign with {listing(_ALGORITHMS[kind])}"
    if key.get("use", "sig") != "sig":
        yield ("use",), f"got {quote(key['use'])}, expected 'sig'; remove keys that sign nothing"
    if kind in _CURVES and "crv" in key and key["crv"] not in _CURVES[kind]:
        yield ("crv",), f"got {quote(key['crv'])}, expected one of {listing(_CURVES[kind])}"


def _number_faults(name: str, value: object) -> Iterator[str]:
    """Yield what is wrong with a number of a public key."""
    if not isinstance(value, str) or not _BASE64URL.fullmatch(value):
        yield f"got {quote(value)}, expected a text in base64url (RFC 7518)"
    elif name == "n" and len(value) * 6 < _LEAST_RSA_BITS:
        yield f"has {len(value) * 6 // 8 * 8} bits, at least {_LEAST_RSA_BITS} are required"
