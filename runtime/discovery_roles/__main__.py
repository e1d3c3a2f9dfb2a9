"""Applies users and roles again and again: a store that lost its data gets them back."""

from __future__ import annotations

import os
import signal
import ssl
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from discovery_roles.store_users import DiscoveryStoreError, StoreUsers
from inference_contracts.discovery_roles import (
    ADMINISTRATOR,
    ENDPOINTS,
    NAMESPACES,
    ROUND_SECONDS,
    STATUS,
)


def run_round(environment: Mapping[str, str], context: ssl.SSLContext) -> list[str]:
    """Apply users and roles by the first member that answers; return a line for each change.

    Raises DiscoveryStoreError if no member accepts the calls; it names every member.
    """
    namespaces = [name for name in environment[NAMESPACES].split(",") if name]
    failures = []
    for endpoint in environment[ENDPOINTS].split(","):
        try:
            return StoreUsers(endpoint, context, environment[ADMINISTRATOR["password"]]).apply(namespaces)
        except DiscoveryStoreError as error:
            failures.append(str(error))
    raise DiscoveryStoreError("; ".join(failures))


def tls_context(environment: Mapping[str, str]) -> ssl.SSLContext:
    """Return a TLS context with the administrator's certificate."""
    context = ssl.create_default_context(cadata=environment[ADMINISTRATOR["ca"]])
    # The module reads certificates of clients from files only.
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "cert"), Path(folder, "key")
        for file, name in ((certificate, "cert"), (key, "key")):
            file.write_text(environment[ADMINISTRATOR[name]], encoding="utf-8")
        context.load_cert_chain(certificate, key)
    return context


def main(environment: Mapping[str, str]) -> None:
    """Apply users and roles until SIGTERM.

    environment: Variables of `inference_contracts.discovery_roles`.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    context = tls_context(environment)
    while True:
        try:
            for line in run_round(environment, context):
                print(line, flush=True)
            Path(environment[STATUS]).touch()
        except DiscoveryStoreError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
        time.sleep(ROUND_SECONDS)


if __name__ == "__main__":
    main(os.environ)
