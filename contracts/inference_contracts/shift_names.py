"""Names of the capacity shift that the library, the constructs and its function share."""

from __future__ import annotations

from typing import Final, Literal

#: What the capacity shift does with its decisions: only record them, or carry them out.
ShiftAction = Literal["observe", "shift"]
#: Margin above the forecast if the blueprint says nothing, in percent. The forecast itself is wide enough to
#: miss no more than half of what may be missed (docs/capacity-shift-decisions.md).
DEFAULT_SAFETY_PERCENT: Final = 0

#: Name of the function, as it appears in logs, metrics and alarms.
SHIFT_CONTROLLER: Final = "capacity-shift"

# --- Environment variables of the function, besides those of `operations_names`. ---

#: File with the `ShiftConfiguration`, a path from the folder of the code.
SHIFT_CONFIGURATION: Final = "SHIFT_CONFIGURATION"
#: Table of batch's records, in which batch reads its ceilings.
SHIFT_BATCH_TABLE: Final = "SHIFT_BATCH_TABLE"

# --- Entry of the table of `operations_names`: the state of the last decision. ---

SHIFT_ENTRY: Final = "shift#state"

# --- Metrics, in the namespace and with the dimensions of `operations_names`. ---

#: Decisions that another run at the same time took first.
SHIFTS_OVERTAKEN: Final = "ShiftsOvertaken"
#: Changes that were made, and changes that failed.
SHIFT_CHANGES: Final = "ShiftChanges"
SHIFT_FAILURES: Final = "ShiftFailures"
#: Deployments whose demand is not known, so that real time keeps all of their capacity.
SHIFT_UNMEASURED: Final = "ShiftUnmeasured"
#: Sum of the floors, in replicas.
SHIFT_FLOORS: Final = "ShiftFloors"
#: Sum of the places that batch may have.
SHIFT_BATCH_PLACES: Final = "ShiftBatchPlaces"

# --- Ceilings of batch: items of the table of its records. ---

#: Beginning of their identifiers. The function may write no other item of that table.
CEILING_PREFIX: Final = "ceiling#"
#: Field of the record: places that the model's jobs may have together.
CEILING_PLACES: Final = "places"
#: Field of the record: time of the decision, in seconds since 1970.
CEILING_AT: Final = "at"
#: Age from which a ceiling counts no longer. Then batch gets no more than a running job must have.
CEILING_SECONDS: Final = 600


def ceiling_identifier(model: str) -> str:
    """Return the identifier of a model's ceiling in the table of batch's records."""
    return f"{CEILING_PREFIX}{model}"
