"""From where an endpoint is asked: what every way of asking provides, and the one from this machine."""

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
from inference_blueprints.benchmarking import aiperf
from inference_blueprints.benchmarking.aiperf import Errand
from inference_blueprints.catalog import Model
from inference_blueprints.errors import UserError
from inference_blueprints.local.serving.model_directory import write_model_directory

#: The first run installs aiperf, 0.8 GB.
_INSTALL_SECONDS = 900
_SAID_LINES = 3


@dataclass(frozen=True, slots=True)
class Access:
    """What an endpoint asks of its callers.

    Parameters
    ----------
    api_key
        Sent as a bearer token; None where none is needed. It is in no representation.
    authority
        File with the certificates, in PEM form, that sign the endpoint's; None for the machine's own.
    """

    api_key: str | None = field(default=None, repr=False)
    authority: Path | None = None

    def session(self) -> aiohttp.ClientSession:
        """Open connections that show the key and trust the authority; the caller closes them."""
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        trusted = ssl.create_default_context(cafile=self.authority)
        return aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=trusted))


def access(key_variable: str | None, authority: Path | None, environment: Mapping[str, str]) -> Access:
    """Return what the user gives for an endpoint.

    Parameters
    ----------
    key_variable
        Name of the environment variable that holds the key.
    authority
        File with certificates in PEM form.
    environment
        The process's environment.

    Raises
    ------
    UserError
        If the variable is not set or empty, or the file holds no certificates.
    """
    key = environment.get(key_variable) if key_variable else None
    if key_variable and not key:
        raise UserError(f"--api-key-env: the environment variable {key_variable} is not set, or empty")
    if authority:
        try:
            ssl.create_default_context(cafile=authority)
        except OSError as error:
            raise UserError(f"--ca-file: {authority}: no certificates in PEM form: {error}") from error
    return Access(key, authority)


class Asker(Protocol):
    """A way of asking."""

    def introduction(self, base_url: str) -> AbstractContextManager[str]:
        """Open an address at which this machine asks the first questions, such as what is served."""

    def ask(self, errand: Errand) -> str:
        """Send the requests, wait for all answers, and return what the program printed."""


@dataclass(frozen=True, slots=True)
class FromHere:
    """Asks from this machine, with aiperf in an environment of its own that uv makes.

    Parameters
    ----------
    access
        What the endpoint asks of its callers.
    shape
        Any model of the catalogue, for the tokenizer that aiperf loads.
    """

    access: Access
    shape: Model

    def introduction(self, base_url: str) -> AbstractContextManager[str]:
        """Return the endpoint itself.

        Parameters
        ----------
        base_url
            Endpoint without ``/v1``.
        """
        return nullcontext(base_url)

    def ask(self, errand: Errand) -> str:
        """Send the requests and return what the program printed.

        Parameters
        ----------
        errand
            What is asked.

        Raises
        ------
        UserError
            If aiperf cannot be installed, does not end in time or fails.
        """
        uv = tools.uv()
        if uv is None:
            raise UserError("aiperf runs in an environment of its own, which uv makes: pip install uv")
        package = f"aiperf=={aiperf.VERSION}"
        command = [str(uv), "tool", "run", "--quiet", "--python", sys.executable, "--from", package]
        _run([*command, "aiperf", "--version"], os.environ, _INSTALL_SECONDS)
        with tempfile.TemporaryDirectory() as folder:
            questions = Path(folder) / "questions.json.gz"
            questions.write_bytes(
                errand.packed(str(write_model_directory(self.shape, Path(folder) / "tokenizer")))
            )
            environment = {**os.environ, "QUESTIONS": str(questions), "FOLDER": folder}
            if self.access.api_key:
                environment["API_KEY"] = self.access.api_key
            if self.access.authority:
                environment["SSL_CERT_FILE"] = str(self.access.authority.resolve())
            return _run([*command, "python", str(aiperf.program())], environment, errand.seconds)


def _run(command: list[str], environment: Mapping[str, str], seconds: float) -> str:
    """Run a command to its end and return what it prints."""
    try:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"aiperf did not end within {seconds:.0f} s; ask for less with --seconds") from error
    if result.returncode:
        said = [line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip()]
        raise UserError(f"aiperf {aiperf.VERSION}: {' / '.join(said[-_SAID_LINES:]) or 'it said nothing'}")
    return result.stdout
