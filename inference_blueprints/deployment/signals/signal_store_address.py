"""Where a platform's signal store is, and whether the platform has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from inference_blueprints.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.spec.types import Blueprint

# Outputs of the stack `<platform>-Stores`, as `stacks/stores_stack.py` names them.
_HOST, _PORT, _CACHE, _READER = "SignalsHost", "SignalsPort", "SignalsCache", "SignalsReader"
#: What that stack says of itself.
STORE_OUTPUTS: Final = (_HOST, _PORT, _CACHE, _READER)


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """How a signal store is read.

    Parameters
    ----------
    cache
        Name of the cache.
    user
        Its user who reads.
    authority
        File with the certificate that the cache's is signed by; None for those that the system trusts.
    tunnel
        ``host:port`` that leads to the endpoint; None where that is reached itself.
    """

    host: str
    port: str
    cache: str
    user: str
    region: str
    authority: str | None = None
    tunnel: str | None = None

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
    """Return the address that the stack's outputs say.

    Parameters
    ----------
    outputs
        Of the stack, `STORE_OUTPUTS` among them.
    authority, tunnel
        As `StoreAddress` has them.
    """
    return StoreAddress(
        outputs[_HOST], outputs[_PORT], outputs[_CACHE], outputs[_READER], region, authority, tunnel
    )


def demand_signal(blueprint: Blueprint, signal: str) -> None:
    """Make sure that a blueprint has a signal store, and in it that signal.

    Parameters
    ----------
    signal
        Name of a signal.

    Raises
    ------
    UserError
        If it has no store, or not that signal.
    """
    section = blueprint.spec.signal_store
    if section is None:
        raise UserError(
            f"{blueprint.metadata.name}: has no signal store; add spec.signalStore to the blueprint, "
            "and deploy it"
        )
    names = [each.name for each in section.signals]
    if signal not in names:
        raise UserError(f"got signal {signal}; the blueprint's signals are {', '.join(names)}")
