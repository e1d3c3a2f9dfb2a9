"""Treats requests on loopback as encrypted.

Policies such as that of the bootstrap bucket refuse requests without TLS. The emulator listens on this
machine's loopback interface, without TLS, and enforces IAM.
"""

from ministack import app

_PLAIN_PIN = app.pin_request_origin


def _pin(source_address: str, _: bool) -> None:  # noqa: FBT001 - ministack's own signature
    _PLAIN_PIN(source_address, True)  # noqa: FBT003


def apply() -> None:
    """Apply the patch: every request satisfies ``aws:SecureTransport``."""
    app.pin_request_origin = _pin
