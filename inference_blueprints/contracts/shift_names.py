"""Names of the capacity shift that the library, the constructs and its function share."""

from __future__ import annotations

from typing import Final, Literal

#: What the capacity shift does with its decisions: only record them, or carry them out.
ShiftAction = Literal["observe", "shift"]

#: Name of the function, as it appears in logs, metrics and alarms.
SHIFT_CONTROLLER: Final = "capacity-shift"
