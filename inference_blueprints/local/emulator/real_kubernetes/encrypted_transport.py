"""Counts requests on loopback as encrypted.

AWS is reached by HTTPS alone, and policies such as that of the bootstrap bucket refuse anything else. The
emulator listens on this machine's loopback interface, without TLS, and enforces IAM.
"""

from ministack import app

_PLAIN_PIN = app.pin_request_origin


def _pin(source_address: str, _: bool) -> None:  # noqa: FBT001 - ministack's own signature
    _PLAIN_PIN(source_address, True)  # noqa: FBT003


def apply() -> None:
    """Let every request meet ``aws:SecureTransport``."""
    app.pin_request_origin = _pin
