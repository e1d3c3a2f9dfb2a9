"""What batch does for a job, in numbers: those of its functions, its workers and its state machine.

They are written where they are used, in programs that know nothing of a plan (``runtime/batch``) and in the
state machine's definition; tests hold these to those.
"""

from __future__ import annotations

from typing import Final

_MIB: Final = 2**20

# Preparing: `batch.preparation`.
SEGMENT_BYTES: Final = 64 * _MIB
#: Lines of a segment become shards whenever so many bytes of them are held, each with what it costs beside.
RUN_BYTES: Final = 64 * _MIB
BYTES_OF_A_HELD_LINE: Final = 1024
SHARD_TOKENS: Final = 8_000_000
SHARD_LINES: Final = 50_000
#: Short, long and very long prompts are apart.
LENGTH_CLASSES: Final = 3
BYTES_PER_TOKEN: Final = 4
#: Segments of a job that are checked at once, and objects that a segment leaves beside its shards.
SEGMENTS_AT_ONCE: Final = 50
OBJECTS_OF_A_SEGMENT: Final = 3

# Working: `batch.worker`, and its settings' defaults.
SHARDS_A_WORKER: Final = 4
REQUESTS_A_WORKER: Final = 512
FLUSH_SECONDS: Final = 1.0
FLUSH_BYTES: Final = 4 * _MIB
HEARTBEAT_SECONDS: Final = 30
#: Output, error file and what became of it.
OBJECTS_OF_A_SHARD: Final = 3

# The state machine: a shard that went silent is given to another after these together.
TASK_HEARTBEAT_SECONDS: Final = 120
LONGEST_SILENCE_SECONDS: Final = 120
#: Bytes that the output of a child takes in its map's: `{}` and a comma.
BYTES_OF_A_CHILD: Final = 3
#: States of an execution that ends well, its start counted; of a child.
STATES_OF_A_JOB: Final = 15
STATES_OF_A_CHILD: Final = 2
#: Events of a child that ends well, and of each time that its shard went silent: scheduled, started,
#: submitted, timed out.
EVENTS_OF_A_CHILD: Final = 8
EVENTS_OF_A_SILENCE: Final = 4

# The scheduler, the API and what they write.
SCHEDULE_SECONDS: Final = 60
#: Running jobs whose places change in that time, at the most.
MOST_RESIZES: Final = 50
UPLOAD_PART_BYTES: Final = 4 * _MIB
