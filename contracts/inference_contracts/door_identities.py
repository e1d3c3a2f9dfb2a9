"""Who may call a model behind the front door, and by which certificate it is known.

With a front door, each entry point of a model listens at the loopback address. Envoy, in the same pod or
task, takes its connections at `CALLERS_PORT`, and admits only these callers. Each has a certificate whose
name is a URI (SPIFFE, "The SPIFFE Identity and Verifiable Identity Document", section 2), which the
certificate authority of the platform issues.

The port that the program has without a front door is the sidecar's too. It takes no certificate, and answers
health checks only: kubelet and load balancers have none (Kubernetes documentation, "Configure Liveness,
Readiness and Startup Probes": kubelet skips the verification of certificates and presents none; Elastic Load
Balancing, "Target groups": "The load balancer establishes TLS connections with the targets using certificates
that you install on the targets"). So nothing changes for them when a front door comes or goes: entry points
of before and after pass the same check at the same port.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

#: A part of the platform that may call a model itself.
Caller = Literal["door", "prometheus", "benchmark", "verify"]

#: Paths of each caller: exact ones, or with a slash at the end all below it.
PATHS: Final[Mapping[Caller, tuple[str, ...]]] = MappingProxyType(
    {
        "door": ("/v1/",),
        "prometheus": ("/metrics",),
        "benchmark": ("/v1/",),
        "verify": ("/v1/", "/metrics"),
    }
)

#: Port at which the program of an entry point listens, at the loopback address only.
BEHIND_PORT: Final = 8080
#: Port for callers with a certificate.
CALLERS_PORT: Final = 8010
#: Name of the rule in the sidecar's configuration that lets old host names lead to the models.
OLD_NAMES_RULE: Final = "old-names"

#: Name that the certificates of all entry points have beside their own, for callers that reach one by its
#: address: Prometheus knows no other name of a pod.
SERVER_NAME: Final = "models.internal"

#: Folder in which a container finds its certificate.
FOLDER: Final = "/certificates"
#: File of each value of the secret with a certificate. The first three are PEM. The last two are what Envoy
#: reads, each as a whole: the certificate with its key, and the authorities that it trusts.
FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ca": "ca.pem",
        "cert": "cert.pem",
        "key": "key.pem",
        "envoy_certificate": "envoy-certificate.json",
        "envoy_authority": "envoy-authority.json",
    }
)
#: Names of the two in Envoy's configuration.
ENVOY_CERTIFICATE: Final = "certificate"
ENVOY_AUTHORITY: Final = "authority"


def caller_uri(platform: str, caller: Caller) -> str:
    """Return the name in the certificate of a caller.

    platform: `metadata.name`.
    """
    return f"spiffe://{platform}/{caller}"


def server_uri(platform: str, release: str) -> str:
    """Return the name in the certificate of a deployment's entry points.

    release: Name of the deployment in the platform.
    """
    return f"spiffe://{platform}/models/{release}"


# Variables of the program that keeps these files up to date: `runtime/certificate_files`.

#: ARN of the secret.
SECRET_VARIABLE: Final = "CERTIFICATE_SECRET"  # noqa: S105 -- the name of a variable
#: Folder of the files.
FOLDER_VARIABLE: Final = "CERTIFICATE_FOLDER"
#: Time between two looks at the secret, in seconds. Certificates live for days.
SECONDS_VARIABLE: Final = "CERTIFICATE_SECONDS"
LOOK_SECONDS: Final = 600
#: Link in the folder that is there once all files are.
READY_LINK: Final = "..data"
