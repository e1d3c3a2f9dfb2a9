"""Whether callers of the front door can get tokens, and whether the door can check them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import urllib3
from botocore.exceptions import ClientError

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.types import IamCallers, Identity
from inference_contracts.errors import UserError

_FEDERATION: Final = "IAM callers"
_KEY_SETS: Final = "key sets"
_DISABLED: Final = "FeatureDisabled"
_TIMEOUT: Final = urllib3.Timeout(connect=3, read=5)
_LARGEST: Final = 1024 * 1024
_OK: Final = 200


def iam_callers(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that STS of this account gives tokens, and that the blueprint trusts them.

    The feature is off in a new account, and its issuer differs by account
    (https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_providers_outbound_getting_started.html).
    """
    identity = _identity(context)
    if identity is None or identity.iam is None:
        return
    account = context.account.number
    others = _other_accounts(context, account)
    issuer = _issuer(context)
    if issuer is None:
        yield CheckResult(
            _FEDERATION,
            "error",
            f"outbound web identity federation is off in account {account}: its principals get no tokens "
            "from sts:GetWebIdentityToken",
            "aws iam enable-outbound-web-identity-federation",
        )
    elif issuer not in _stated(identity.iam):
        yield CheckResult(
            _FEDERATION,
            "error",
            f"the issuer of account {account} is {issuer}, which spec.frontDoor.identity.iam.accounts does "
            "not have; add it, or no token of this account is admitted",
        )
    else:
        yield CheckResult(_FEDERATION, "ok", f"tokens of account {account} come from {issuer}")
    missing = len(others) - (len(_stated(identity.iam)) - 1)
    if missing > 0:
        yield CheckResult(
            _FEDERATION,
            "warning",
            f"teams have principals in {', '.join(others)}, and 'accounts' has {len(_stated(identity.iam))} "
            "issuers; add those of the other accounts",
            "aws iam get-outbound-web-identity-federation-info",
        )


def key_sets(context: DoctorContext) -> Iterator[CheckResult]:
    """Check from this machine that key sets can be fetched, and that those in the file are not outdated."""
    identity = _identity(context)
    if identity is None:
        return
    sets: list[tuple[str, str | None, Mapping[str, Any] | None]] = [
        (each.issuer, each.keys_url, each.keys) for each in identity.oidc
    ]
    if identity.iam:
        # Where AWS publishes them: EnableOutboundWebIdentityFederation, IAM API Reference.
        sets += [
            (each.issuer, f"{each.issuer.rstrip('/')}/.well-known/jwks.json", each.keys)
            for each in identity.iam.accounts
        ]
    for issuer, url, stated in sets:
        if url is not None:
            yield _compared(issuer, url, stated)


def _compared(issuer: str, url: str, stated: Mapping[str, Any] | None) -> CheckResult:
    """Compare the published keys of an issuer with those of the file."""
    try:
        published = key_ids(fetch(url))
    except UserError as error:
        if stated is not None:
            return CheckResult(
                _KEY_SETS,
                "unknown",
                f"{issuer}: whether the keys of the file are still its keys was not checked: {error}",
            )
        return CheckResult(
            _KEY_SETS,
            "warning",
            f"{error}; the front door fetches this key set, so let its network reach it, or state 'keys'",
            f"curl {url}",
        )
    if stated is None:
        return CheckResult(_KEY_SETS, "ok", f"{issuer}: {len(published)} keys")
    new = sorted(published - key_ids(stated))
    if new:
        return CheckResult(
            _KEY_SETS,
            "error",
            f"{issuer} has new keys that the file does not have: {', '.join(new)}; copy its key set into "
            "'keys', or tokens that are signed with them are refused",
            f"curl {url}",
        )
    return CheckResult(_KEY_SETS, "ok", f"{issuer}: the file has its {len(published)} keys")


def fetch(url: str) -> Mapping[str, Any]:
    """Return a key set. Raises UserError if it cannot be read.

    url: Its address.
    """
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT, retries=urllib3.Retry(total=1, redirect=2)) as pool:
            answer = pool.request("GET", url, preload_content=False)
            text = answer.read(_LARGEST)
            answer.release_conn()
    except urllib3.exceptions.HTTPError as error:
        raise UserError(f"{url} cannot be read from this machine: {' '.join(str(error).split())}") from error
    if answer.status != _OK:
        raise UserError(f"{url} answers with status {answer.status}")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UserError(f"{url} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UserError(f"{url} is no key set: a JSON object with 'keys'")
    return found


def key_ids(key_set: Mapping[str, Any]) -> frozenset[str]:
    """Return the identifiers of the keys of a set. Raises UserError if it is none.

    key_set: A JSON Web Key Set (RFC 7517).
    """
    keys = key_set.get("keys")
    if not isinstance(keys, list) or not keys or not all(isinstance(each, dict) for each in keys):
        raise UserError("the key set has no 'keys'")
    return frozenset(str(each.get("kid", "")) for each in keys)


def _identity(context: DoctorContext) -> Identity | None:
    door = context.blueprint.spec.front_door
    return door.identity if door else None


def _stated(callers: IamCallers) -> list[str]:
    return [each.issuer.rstrip("/") for each in callers.accounts]


def _other_accounts(context: DoctorContext, account: str) -> list[str]:
    """Return the other accounts that principals of teams are in."""
    found = {arn.split(":")[4] for team in context.blueprint.spec.teams for arn in team.principals}
    return sorted(found - {account})


def _issuer(context: DoctorContext) -> str | None:
    """Return the issuer of the account. None if the feature is off."""
    try:
        found = context.account.client("iam").get_outbound_web_identity_federation_info()
    except ClientError as error:
        if error.response.get("Error", {}).get("Code", "").startswith(_DISABLED):
            return None
        raise
    return found["IssuerIdentifier"].rstrip("/") if found.get("JwtVendingEnabled") else None
