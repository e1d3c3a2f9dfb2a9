"""The turn at running a suspect alone: one process of all workers of a model has it at a time.

The filters in front of several entry points do not know of each other. Without turns a line that was only
tried beside what ends workers is lost with it, each by another filter, and then the word of its filter and
a loss alone speak against it.

The turn is an item of the table of progress, which is written whole under a condition (Amazon DynamoDB API
Reference, "PutItem"), as progress itself is: so a worker needs no permission but that of its progress. It
ends by itself: a process that has ended or hangs keeps it for a minute, and a long answer keeps the others
waiting no longer. What is lost after that was perhaps not alone.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from batch.contracts.progress_items import turn_item
from batch.worker.clients import in_thread, is_condition_refused
from batch.worker.metrics import log

#: Time for which a process has the turn unless it takes it again, in seconds.
TURN_SECONDS: Final = 60.0
#: Time after a loss until the next process has the turn, in seconds: the death is then known to all filters
#: (`request_filter.suspects.SETTLED_SECONDS`), and lost requests of the dead worker have ended.
AFTER_LOSS_SECONDS: Final = 15.0


@dataclass(slots=True)
class SuspectTurn:
    """The turn of one process."""

    client: Any
    """boto3's client of DynamoDB."""
    table: str | None
    """The table of progress. None if this process is the only one: it always has the turn."""
    model: str
    clock: Callable[[], float] = time.time
    """Time in seconds since 1970, which all processes share."""
    _holder: str = field(default_factory=lambda: uuid.uuid4().hex, init=False)
    _ends: float = field(default=float("-inf"), init=False)

    async def take(self) -> bool:
        """Take the turn, or take it again, and return whether it is this process's.

        If AWS does not answer, the suspect runs without a turn (`lasts`): it then needs more losses.
        """
        self._ends = float("-inf")
        begin = asyncio.get_running_loop().time()
        try:
            await self._write(TURN_SECONDS)
        except (BotoCoreError, ClientError) as error:
            if is_condition_refused(error):
                return False
            log("turn_unknown", model=self.model, reason=str(error))
            return True
        self._ends = begin + TURN_SECONDS if self.table else float("inf")
        return True

    @property
    def lasts(self) -> bool:
        """Whether no other process runs a suspect alone."""
        return asyncio.get_running_loop().time() < self._ends

    async def end(self, *, lost: bool) -> None:
        """Let another process have the turn.

        lost: Whether the request was lost. Then it gets the turn a little later.
        """
        if not self.lasts:
            return
        self._ends = float("-inf")
        try:
            await self._write(AFTER_LOSS_SECONDS if lost else 0.0)
        except (BotoCoreError, ClientError) as error:
            # It ends by itself.
            log("turn_unknown", model=self.model, reason=str(error))

    async def _write(self, seconds: float) -> None:
        if self.table is None:
            return
        now = self.clock()
        item = turn_item(self.model, self._holder, until=now + seconds, now=now)
        await in_thread(self.client.put_item, TableName=self.table, **item)
