"""Checks JSON Web Tokens: signature, issuer, audience and time.

``jwt_authn`` is stable and robust to untrusted callers (Envoy's ``extensions_metadata.yaml``). The algorithm
is that of the key, so that neither ``none`` nor an HMAC with a public key passes
(https://www.rfc-editor.org/rfc/rfc8725#section-3.1). The payload of a checked token goes to the policy; the
token itself goes nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document, Peer
from inference_blueprints.render.front_door.errors import JWT_FAILURE, JWT_NAMESPACE
from inference_blueprints.serving.types.front_door import DoorKeySet
from inference_contracts import door_headers, door_keys

_HTTPS: Final = 443
#: Time for which a fetched key set is used: a key that an issuer withdraws is accepted that long.
_KEY_SET_SECONDS: Final = 300
_FETCH_SECONDS: Final = 5
#: Checked tokens that a worker of Envoy remembers, of each issuer whose keys stand in the configuration:
#: their issuer, audience and time are checked again, their signature is not (``startVerify`` of Envoy's
#: ``jwt_authn/authenticator.cc``). Other keys make another listener, which remembers nothing. Fetched keys
#: change without one, so with them nothing is remembered: a token would be accepted for its whole life after
#: its key was withdrawn.
_CHECKED_TOKENS: Final = 1000
#: Difference between the clocks of issuers and of the door.
_SKEW_SECONDS: Final = 30


def token_filters(key_sets: Sequence[DoorKeySet]) -> Iterator[Document]:
    """Yield the filter. Without issuers, there is none."""
    if not key_sets:
        return
    providers = {_name(number): _provider(number, each) for number, each in enumerate(key_sets)}
    names = [{"provider_name": name} for name in providers]
    needed = {"requires_any": {"requirements": names}} if len(names) > 1 else names[0]
    api_key = {"safe_regex": {"regex": f"(?i)bearer {door_keys.PREFIX}-.*"}}
    yield parts.extension(
        JWT_NAMESPACE,
        "filters.http.jwt_authn.v3.JwtAuthentication",
        providers=providers,
        # API keys are no tokens: the policy checks them. Without credentials, it is the policy that refuses.
        rules=[
            {"match": _match({"string_match": api_key})},
            {"match": _match({"present_match": True}), "requires": needed},
        ],
    )


def key_clusters(key_sets: Sequence[DoorKeySet], trusted: str | None) -> Iterator[Document]:
    """Yield a cluster for each issuer whose keys are fetched.

    trusted: PEM file with the issuers of the certificates of their servers.
    Raises ValueError if it is missing.
    """
    for number, each in enumerate(key_sets):
        if each.url is None:
            continue
        if trusted is None:
            raise ValueError(f"the keys of {each.issuer} are fetched: the door needs trusted authorities")
        place = urlsplit(each.url)
        host = place.hostname or ""
        peer = Peer(trusted, (host,))
        yield parts.cluster(
            _name(number),
            [parts.socket(host, place.port or _HTTPS)],
            transport=parts.upstream_tls(peer, host),
        )


def _name(number: int) -> str:
    return f"issuer-{number}"


def _provider(number: int, key_set: DoorKeySet) -> Document:
    keys: Document
    if key_set.url is None:
        keys = {
            "local_jwks": {"inline_string": json.dumps(key_set.inline)},
            "jwt_cache_config": {"jwt_cache_size": _CHECKED_TOKENS},
        }
    else:
        fetched = {"uri": key_set.url, "cluster": _name(number), "timeout": f"{_FETCH_SECONDS}s"}
        keys = {
            "remote_jwks": {
                "http_uri": fetched,
                "cache_duration": f"{_KEY_SET_SECONDS}s",
                # The door starts while an issuer does not answer; its callers get 401 until it does.
                "async_fetch": {"fast_listener": True},
                "retry_policy": {"num_retries": 3},
            }
        }
    return {
        "issuer": key_set.issuer,
        "audiences": [key_set.audience],
        # Only this header: by default Envoy reads the query parameter access_token too, which logs show.
        "from_headers": [{"name": "authorization", "value_prefix": "Bearer "}],
        "forward": False,
        "forward_payload_header": door_headers.TOKEN,
        "require_expiration": True,
        "clock_skew_seconds": _SKEW_SECONDS,
        "failed_status_in_metadata": JWT_FAILURE,
        **keys,
    }


def _match(condition: Document) -> Document:
    return {"prefix": "/", "headers": [{"name": "authorization", **condition}]}
