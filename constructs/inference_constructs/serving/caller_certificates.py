"""Certificates with which the callers of models, and the models, know each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import aws_cdk as cdk
from constructs import Construct

from inference_constructs.issued_certificates import IssuedCertificates
from inference_runtime import runtime_directory

#: Life of the authority, and what is left of it when its successor is made, in days.
_AUTHORITY_DAYS: Final = 3650
_AUTHORITY_LEFT_DAYS: Final = 365
#: Life of a certificate, and what is left of it when it is renewed, in days. Between the two are seven daily
#: builds, and all programs read their files again.
_DAYS: Final = 14
_LEFT_DAYS: Final = 7
_BUILD_MINUTES: Final = 30


@dataclass(frozen=True)
class CertifiedIdentity:
    """What a certificate certifies."""

    name: str
    """Name among the identities of the platform."""
    uri: str
    """Its URI, by which it is admitted."""
    host_names: Sequence[str] = ()
    """Host names under which it answers."""
    usage: Literal["server", "client"] = "client"
    """Whether it answers connections, or only makes them."""


class CallerCertificates(IssuedCertificates):
    """A certificate authority of a platform, and a secret with the certificate of each identity.

    The build runs every day. Whoever has a certificate reads its secret every few minutes, so that nothing
    starts again when it is renewed.

    AWS Private CA would keep the key of the authority in hardware, for 50 US dollars per month and authority
    in its short-lived mode (https://aws.amazon.com/private-ca/pricing/), and would still need a program that
    asks it for each certificate on ECS: Service Connect's TLS verifies no client certificates (Amazon ECS
    Developer Guide, "Encrypt Amazon ECS Service Connect traffic"). cert-manager runs on Kubernetes only.

    Parameters
    ----------
    platform
        `metadata.name`.
    identities
        Who gets a certificate. Their names are distinct.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, platform: str, identities: Sequence[CertifiedIdentity]
    ) -> None:
        super().__init__(scope, construct_id)
        authority = self.add_secret("Authority", "Certificate authority of callers of models")
        self._secrets = {
            each.name: self.add_secret(f"Certificate-{each.name}", f"Certificate of {each.uri}")
            for each in identities
        }
        script = runtime_directory() / "door_certificates" / "issue.py"
        text = script.read_text(encoding="utf-8")
        wanted = [
            {
                "secret": self._secrets[each.name].secret_arn,
                "uri": each.uri,
                "names": list(each.host_names),
                "usage": each.usage,
            }
            for each in identities
        ]
        described = json.dumps(
            [[each.name, each.uri, list(each.host_names), each.usage] for each in identities]
        )
        self.issue(
            command=f"python3 - <<'PROGRAM'\n{text}\nPROGRAM",
            values={
                "PLATFORM": platform,
                "AUTHORITY": authority.secret_arn,
                "AUTHORITY_DAYS": str(_AUTHORITY_DAYS),
                "AUTHORITY_LEFT_DAYS": str(_AUTHORITY_LEFT_DAYS),
                "IDENTITIES": cdk.Stack.of(self).to_json_string(wanted),
                "DAYS": str(_DAYS),
                "LEFT_DAYS": str(_LEFT_DAYS),
            },
            secrets=[authority, *self._secrets.values()],
            digested=f"{text}\n{described}",
            rule="Daily",
            days=1,
            minutes=_BUILD_MINUTES,
        )

    @property
    def secret_arns(self) -> Mapping[str, str]:
        """ARN of the secret of each identity, by its name."""
        return {name: secret.secret_arn for name, secret in self._secrets.items()}
