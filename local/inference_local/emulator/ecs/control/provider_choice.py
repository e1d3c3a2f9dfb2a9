"""Which capacity provider a task of a service goes to. Source: API CapacityProviderStrategyItem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from inference_local.emulator.ecs.control.cluster_state import Shape


def choose_provider(strategy: Sequence[Shape], present: Iterable[str]) -> str:
    """Return the provider of the next task.

    Base numbers are filled first. Then the weights divide the tasks beyond the bases. A provider of weight 0
    gets no task beyond its base.

    strategy: Items with ``capacityProvider``, ``base`` and ``weight``.
    present: Provider of each task that the service has.
    """
    counts = Counter(present)
    for item in strategy:
        if counts[item["capacityProvider"]] < int(item.get("base") or 0):
            return str(item["capacityProvider"])
    weighted = [item for item in strategy if int(item.get("weight") or 0) > 0] or list(strategy)

    def share(item: Shape) -> float:
        beyond = counts[item["capacityProvider"]] - int(item.get("base") or 0)
        return (beyond + 1) / max(1, int(item.get("weight") or 0))

    return str(min(weighted, key=share)["capacityProvider"])
