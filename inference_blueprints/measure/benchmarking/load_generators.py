"""The interface of load generators, and the load generator on this machine."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import aiohttp

from inference_blueprints import tools
from inference_blueprints.measure.benchmarking import aiperf
from inference_blueprints.measure.benchmarking.aiperf import LoadTest
from inference_blueprints.measure.tokenizer.model_directory import write_model_directory
from inference_catalog import Model
from inference_contracts.errors import UserError

#: The first run installs aiperf, 0.8 GB.
_INSTALL_SECONDS = 900
_ERROR_LINES = 3


@dataclass(frozen=True, slots=True)
class Access:
    """API key and certificates for an endpoint."""

    api_key: str | None = field(default=None, repr=False)
    """Sent as a bearer token, if the endpoint needs one. Left out of the representation."""
    authority: Path | None = None
    """File with trusted certificates in PEM format. None for those of this machine."""

    def session(self) -> aiohttp.ClientSession:
        """Open an HTTP session with the key and the certificates. The caller closes it."""
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        trusted = ssl.create_default_context(cafile=self.authority)
        return aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=trusted))


def access(key_variable: str | None, authority: Path | None, environment: Mapping[str, str]) -> Access:
    """Return the access that the user gives for an endpoint.

    key_variable: Name of the environment variable with the API key.
    authority: File with certificates in PEM form.
    Raises UserError if the variable is unset or empty, or the file has no certificates.
    """
    key = environment.get(key_variable) if key_variable else None
    if key_variable and not key:
        raise UserError(f"--api-key-env: the environment variable {key_variable} is not set or empty")
    if authority:
        try:
            ssl.create_default_context(cafile=authority)
        except OSError as error:
            raise UserError(f"--ca-file: {authority}: no certificates in PEM format: {error}") from error
    return Access(key, authority)


class LoadGenerator(Protocol):
    """Sends a load test to an endpoint."""

    def open_address(self, base_url: str) -> AbstractContextManager[str]:
        """Open an address to which this machine sends the first requests, such as the list of models."""

    def ask(self, load_test: LoadTest) -> str:
        """Send the requests, wait for all answers and return the output of the program."""


@dataclass(frozen=True, slots=True)
class LocalLoadGenerator:
    """Sends requests from this machine. uv creates a separate environment for aiperf."""

    access: Access
    """API key and certificates for the endpoint."""
    shape: Model
    """Any model of the catalogue; aiperf needs its tokenizer."""

    def open_address(self, base_url: str) -> AbstractContextManager[str]:
        """Return the endpoint itself."""
        return nullcontext(base_url)

    def ask(self, load_test: LoadTest) -> str:
        """Send the requests and return the output of the program.

        Raises UserError if aiperf cannot be installed, times out or fails.
        """
        uv = tools.uv()
        if uv is None:
            raise UserError(
                "aiperf needs uv, which creates an environment for it; install uv with: pip install uv"
            )
        package = f"aiperf=={aiperf.VERSION}"
        command = [str(uv), "tool", "run", "--quiet", "--python", sys.executable, "--from", package]
        _run([*command, "aiperf", "--version"], os.environ, _INSTALL_SECONDS)
        with tempfile.TemporaryDirectory() as folder:
            questions = Path(folder) / "questions.json.gz"
            questions.write_bytes(
                load_test.packed(str(write_model_directory(self.shape, Path(folder) / "tokenizer")))
            )
            environment = {**os.environ, "QUESTIONS": str(questions), "FOLDER": folder}
            if self.access.api_key:
                environment["API_KEY"] = self.access.api_key
            if self.access.authority:
                environment["SSL_CERT_FILE"] = str(self.access.authority.resolve())
            return _run([*command, "python", str(aiperf.program())], environment, load_test.seconds)


def _run(command: list[str], environment: Mapping[str, str], seconds: float) -> str:
    """Run a command to its end and return its output."""
    try:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"aiperf did not end within {seconds:.0f} s; send fewer requests with --seconds or --requests"
        ) from error
    if result.returncode:
        lines = [line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip()]
        raise UserError(
            f"aiperf {aiperf.VERSION}: {' / '.join(lines[-_ERROR_LINES:]) or 'failed without output'}"
        )
    return result.stdout
