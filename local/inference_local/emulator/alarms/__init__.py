"""CloudWatch's alarms and metrics of logs, after AWS's documents: pure functions of time."""

from typing import Final

#: Path of the emulator that evaluates all alarms as of the time in its query, `at` in seconds since 1970.
EVALUATION_PATH: Final = "/_alarms/evaluate"
