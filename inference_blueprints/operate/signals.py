"""Finds and reads the signal store of a platform."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from inference_contracts.errors import UserError
from inference_contracts.records import dataclass
from inference_runtime import runtime_directory

if TYPE_CHECKING:
    from inference_blueprints.spec.types import Blueprint


# Outputs of the stack `<platform>-Stores` (`stacks/stores_stack.py`).
_HOST, _PORT, _CACHE, _READER = "SignalsHost", "SignalsPort", "SignalsCache", "SignalsReader"
#: Outputs of that stack.
STORE_OUTPUTS: Final = (_HOST, _PORT, _CACHE, _READER)


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Address of a signal store."""

    host: str
    port: str
    cache: str
    user: str
    """User of the cache with read permission."""
    region: str
    authority: str | None = None
    """File with the certificate of the authority; None for those that the system trusts."""
    tunnel: str | None = None
    """``host:port`` of a tunnel to the endpoint; None for a direct connection."""

    def environment(self) -> dict[str, str]:
        """Return the address as the variables of `runtime/signals/connection.py`."""
        variables = {
            "SIGNALS_HOST": self.host,
            "SIGNALS_PORT": self.port,
            "SIGNALS_CACHE": self.cache,
            "SIGNALS_USER": self.user,
            "SIGNALS_REGION": self.region,
            "SIGNALS_AUTHORITY": self.authority,
            "SIGNALS_TUNNEL": self.tunnel,
        }
        return {name: value for name, value in variables.items() if value}


def stores_stack(platform: str) -> str:
    """Return the name of the stack with the signal store."""
    return f"{platform}-Stores"


def store_address(
    outputs: Mapping[str, str], region: str, *, authority: str | None = None, tunnel: str | None = None
) -> StoreAddress:
    """Return the address from the stack's outputs.

    outputs: Outputs of the stack, including `STORE_OUTPUTS`.
    authority, tunnel: Fields of `StoreAddress`.
    """
    return StoreAddress(
        outputs[_HOST], outputs[_PORT], outputs[_CACHE], outputs[_READER], region, authority, tunnel
    )


def demand_signal(blueprint: Blueprint, signal: str) -> None:
    """Check that a blueprint has a signal store with this signal.

    Raises UserError if it has no store, or not this signal.
    """
    section = blueprint.spec.signal_store
    if section is None:
        raise UserError(
            f"{blueprint.metadata.name}: has no signal store; add spec.signalStore to the blueprint, "
            "and deploy it"
        )
    names = [each.name for each in section.signals]
    if signal not in names:
        raise UserError(f"got signal {signal}; allowed are {', '.join(names)}")


# Reads signals with the platform's library, `runtime/signals`, in a separate process.

#: A signal in the format of `runtime/signals/__main__.py`: name, key and the record.
Record = Mapping[str, Any]
# The program's exit codes: all values found, or some missing; and no answer.
_ANSWERED: Final = (0, 3)
_NO_ANSWER: Final = 2
#: What to do, by the first words of the program's message.
_ADVICE: Final = {
    "the store refuses": "your role needs elasticache:Connect on the cache and on its reading user",
    "the store does not answer": "run this within the platform's VPC, or use a tunnel (--address)",
}


def read_signals(
    address: StoreAddress,
    name: str,
    keys: Sequence[str],
    *,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Record]:
    """Return the records of keys, by key; one without a value is left out.

    keys: Keys, which must not be empty or have line breaks.
    Raises UserError if the store does not answer or refuses, or a key is not valid.
    """
    for key in keys:
        if not key or "\n" in key:
            raise UserError(
                "got an empty key; remove it"
                if not key
                else f"got key {key!r}, keys must not have line breaks; remove it"
            )
    program = {"PYTHONPATH": str(runtime_directory()), "PYTHONUTF8": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "signals", name],
        input="".join(f"{key}\n" for key in keys),
        env={**environment, **address.environment(), **program},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if ran.returncode not in _ANSWERED:
        place = address.tunnel or f"{address.host}:{address.port}"
        # After an unexpected error, the last line has the reason.
        words = ran.stderr if ran.returncode == _NO_ANSWER else ran.stderr.rstrip().rpartition("\n")[2]
        raise UserError(f"signal store at {place}: {_with_advice(' '.join(words.split()))}")
    records = [json.loads(line) for line in ran.stdout.split("\n") if line]
    return {record["key"]: record for record in records}


def _with_advice(reason: str) -> str:
    """Return the reason, with advice if there is any."""
    advice = next((advice for words, advice in _ADVICE.items() if reason.startswith(words)), None)
    return f"{reason}; {advice}" if advice else reason
