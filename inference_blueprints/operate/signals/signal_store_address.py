"""The address of a platform's signal store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from inference_contracts.errors import UserError

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
