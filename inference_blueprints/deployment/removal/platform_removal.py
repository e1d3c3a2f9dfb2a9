"""Takes a platform away, whole or what its blueprint no longer names, and proves it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from inference_blueprints.deployment.aws.account import Account, readable_errors
from inference_blueprints.deployment.cloudformation.deployed_stacks import (
    FOUNDATIONS,
    DeployedStack,
    deployed_stacks,
    physical_ids,
    waves,
)
from inference_blueprints.deployment.cloudformation.stack_events import resource_counts
from inference_blueprints.deployment.removal import leftovers
from inference_blueprints.deployment.removal.stack_deletion import Retained, delete_stacks
from inference_blueprints.errors import UserError
from inference_blueprints.synthesis import synthesise

#: How long the nodes of pools may take to end after their pools, in seconds.
DRAIN_SECONDS = 900.0
#: How long what no stack owns may take to go, in seconds.
SWEEP_SECONDS = 600.0
_CLUSTER, _PLATFORM, _CAPACITY = (FOUNDATIONS.index(kind) for kind in ("Cluster", "Platform", "Capacity"))


class Removal:
    """What `destroy` and `prune` do to one platform.

    Parameters
    ----------
    blueprint
        Name or path, for commands in messages.
    say
        Called with each line for the user.
    """

    def __init__(
        self, account: Account, platform: str, *, blueprint: str, say: Callable[[str], None]
    ) -> None:
        self._account = account
        self._platform = platform
        self._blueprint = blueprint
        self._say = say

    def stacks(self) -> list[DeployedStack]:
        """Return the platform's stacks in the account.

        Raises
        ------
        UserError
            If AWS cannot be asked.
        """
        with readable_errors():
            return deployed_stacks(self._account.client("cloudformation"), self._platform)

    def unnamed_stacks(self) -> list[DeployedStack]:
        """Return the platform's stacks that the blueprint no longer makes.

        Raises
        ------
        UserError
            If the blueprint cannot be synthesised or AWS cannot be asked.
        """
        with tempfile.TemporaryDirectory() as directory:
            synthesise(self._blueprint, Path(directory))
            named = resource_counts(Path(directory))
        return [stack for stack in self.stacks() if stack.name not in named]

    def prune(self, stacks: Sequence[DeployedStack]) -> list[Retained]:
        """Delete some stacks, those that stand highest first.

        Raises
        ------
        UserError
            If one cannot be deleted.
        """
        retained: list[Retained] = []
        for wave in waves(stacks):
            retained += self._delete(wave)
        return retained

    def destroy(self) -> list[Retained]:
        """Delete everything: models, then pools with their nodes, then what they stand on.

        Returns
        -------
        list of Retained
            Data that the blueprint keeps.

        Raises
        ------
        UserError
            If something cannot be deleted, or anything billable is left; run again, it goes on where it was.
        """
        retained = self._delete_from(_CAPACITY)
        self._drain()
        retained += self._delete_from(_CLUSTER)
        self._sweep()
        retained += self._delete_from(0)
        self._prove()
        return retained

    def _delete_from(self, level: int) -> list[Retained]:
        """Delete the stacks of a level and above it, the highest first."""
        return self.prune([stack for stack in self.stacks() if stack.level >= level])

    def _drain(self) -> None:
        """Wait for Karpenter to end the nodes of the pools that are gone, while there is a Karpenter."""
        deadline = time.monotonic() + DRAIN_SECONDS
        if not any(stack.level == _PLATFORM for stack in self.stacks()):
            return
        while nodes := self._nodes():
            if time.monotonic() > deadline:
                self._say(f"nodes that did not end by themselves: {', '.join(nodes)}")
                return
            time.sleep(leftovers.POLL_SECONDS)

    def _nodes(self) -> list[str]:
        with readable_errors():
            return leftovers.nodes_of_pools(self._account, self._platform)

    def _sweep(self) -> None:
        """Delete what no stack owns, before the network that it is in."""
        with readable_errors():
            owned = physical_ids(self._account.client("cloudformation"), self.stacks())
            leftovers.sweep(
                self._account, self._platform, owned=owned, patience_seconds=SWEEP_SECONDS, say=self._say
            )

    def _prove(self) -> None:
        """Look once more, for everything."""
        with readable_errors():
            left = leftovers.leftovers(self._account, self._platform)
        names = [f"{each.kind} {each.identifier}" for each in left]
        names += [f"stack {stack.name}" for stack in self.stacks()]
        if names:
            raise UserError(
                f"still there, and billed: {', '.join(names)}; "
                f"run `blueprints destroy {self._blueprint}` again, or remove them by hand"
            )

    def _delete(self, wave: Sequence[DeployedStack]) -> list[Retained]:
        with readable_errors():
            return delete_stacks(
                self._account.client("cloudformation"), wave, blueprint=self._blueprint, say=self._say
            )
