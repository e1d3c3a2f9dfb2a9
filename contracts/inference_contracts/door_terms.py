"""Words and units of the front door that a blueprint and its policy process share.

`blueprints validate` imports them, so the records of `door_configuration` are in a module of their own.
"""

from __future__ import annotations

from typing import Final, Literal

#: Nano-dollars of one US dollar.
NANO: Final = 1_000_000_000

#: What a budget limits.
BudgetScope = Literal["team", "project", "key", "model"]
#: When a budget refuses: before the request that would pass it, or after it has been passed.
Enforcement = Literal["before", "after"]
#: What happens to requests while the store of the ledger does not answer: all are refused with 503, or each
#: replica admits requests up to its share of a stated allowance.
StoreLoss = Literal["refuse", "admit"]
