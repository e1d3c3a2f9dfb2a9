"""The container that keeps a certificate's files up to date, the same on every target."""

from __future__ import annotations

from typing import Final

from inference_blueprints.serving.packed_program import LOADER, packed_program
from inference_catalog.ecs_images import ecs_image
from inference_contracts.door_identities import (
    FILES,
    FOLDER,
    FOLDER_VARIABLE,
    READY_LINK,
    SECRET_VARIABLE,
    SERVER_NAME,
)

#: Name of the container.
KEEPER: Final = "certificate"
#: What it requests on Kubernetes, in thousandths of a vCPU.
KEEPER_MILLICPU: Final = 50
_MODULE: Final = "certificate_files"
_PROGRAM_VARIABLE: Final = "CERTIFICATE_PROGRAM"
_LOADER: Final = LOADER.format(text=f'os.environ.pop("{_PROGRAM_VARIABLE}")')
#: Program and arguments. The image has boto3.
KEEPER_COMMAND: Final = ("python3", "-c", _LOADER, _MODULE)
#: Program that succeeds once the files are there.
READY_COMMAND: Final = ("test", "-e", f"{FOLDER}/{READY_LINK}")


def keeper_image() -> str:
    """Return its image."""
    return ecs_image("python")


def keeper_environment(secret_arn: str) -> dict[str, str]:
    """Return its variables.

    secret_arn: ARN of the secret with the certificate, which may be a reference.
    """
    return {
        FOLDER_VARIABLE: FOLDER,
        # Where the image has boto3, if it is not beside Python's own packages.
        "PYTHONPATH": "/var/runtime",
        _PROGRAM_VARIABLE: packed_program(_MODULE),
        SECRET_VARIABLE: secret_arn,
    }


def prometheus_tls(server_name: str = SERVER_NAME) -> dict[str, str]:
    """Return the section ``tls_config`` with which Prometheus shows its certificate.

    It reads the files again when they change (prometheus/common, ``config/http_config.go``,
    ``NewTLSRoundTripper``). It knows entry points by address, so it asks for the name that all have.

    server_name: Name that the certificate of the other side must have.
    """
    return {
        "ca_file": f"{FOLDER}/{FILES['ca']}",
        "cert_file": f"{FOLDER}/{FILES['cert']}",
        "key_file": f"{FOLDER}/{FILES['key']}",
        "server_name": server_name,
    }
