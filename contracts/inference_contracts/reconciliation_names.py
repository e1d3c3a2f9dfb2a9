"""Names of the nightly comparison of ledger and usage records: variables, metrics, and when it runs."""

from __future__ import annotations

from typing import Final

#: Environment variables of the function: name of the platform, table of the ledger's checkpoints, bucket of
#: the usage records, and time zone of the budgets.
PLATFORM: Final = "DOOR_PLATFORM"
TABLE: Final = "DOOR_LEDGER_TABLE"
BUCKET: Final = "DOOR_USAGE_BUCKET"
ZONE: Final = "DOOR_TIME_ZONE"

METRIC_NAMESPACE: Final = "InferenceBlueprints/FrontDoor"
PLATFORM_DIMENSION: Final = "Platform"
#: Sum of the teams' differences, in percent of what was spent, and the sums themselves.
DIFFERENCE_PERCENT: Final = "LedgerDifference"
LEDGER_USD: Final = "LedgerUsd"
RECORDED_USD: Final = "RecordedUsd"
#: Difference that raises an alarm, in percent. Both sides come from the same line of Envoy's log, and count
#: its request on the day of its admission, so they differ only by what was lost.
MOST_DIFFERENT_PERCENT: Final = 0.5

#: Hours of the day, in the time zone of the budgets, at which the day before is compared: late enough for
#: streams of an hour that began before midnight, and a second time for records that Firehose delivered late.
HOURS: Final = (4, 16)
#: Time after which a day is compared, in seconds: a stream may last an hour, and Firehose keeps a record for
#: a minute.
SETTLED_SECONDS: Final = 2 * 3600
#: Compressed bytes of records that one run reads: some 10 million records of 100 bytes.
MOST_BYTES: Final = 2**30
