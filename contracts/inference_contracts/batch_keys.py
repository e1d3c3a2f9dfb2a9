"""Keys of the objects of a job in the batch bucket.

========================================== ===================================================================
Key                                        Object
========================================== ===================================================================
``jobs/<job>/request.json``                the job as it was submitted (`contracts.request`)
``jobs/<job>/job.json``                    job description for workers (`contracts.job_description`)
``jobs/<job>/segments.jsonl``              the segments into which its input is cut
``jobs/<job>/segments/<n>.json``           result of checking one segment of the input
``jobs/<job>/segments/<n>.ids``            digests of the custom_ids of that segment, sorted
``jobs/<job>/segments/<n>.error.jsonl``    its invalid lines
``jobs/<job>/plan.json``                   totals of all segments, price, hours, and problems
``jobs/<job>/invalid.jsonl``               all invalid lines, as rows of the error file
``jobs/<job>/shards.jsonl``                the shards, one per line
``jobs/<job>/shards/<shard>.jsonl``        the lines of a shard (`contracts.shard`), never changed
``jobs/<job>/chunks/<shard>/<n>.jsonl``    results in order of completion; each object is a commit
``jobs/<job>/parts/<shard>/output.jsonl``  all results of a shard that succeeded
``jobs/<job>/parts/<shard>/error.jsonl``   all of its lines that failed
``jobs/<job>/parts/<shard>/expired.jsonl`` all of its lines that expired at the deadline
``jobs/<job>/parts/<shard>/done.json``     counts and usage; written last
``jobs/<job>/images/<shard>/<line>-<n>.*`` an image that was generated for a line, as its row names it
``jobs/<job>/rest/<shard>.output.jsonl``   answers of a shard that was unfinished when the job ended
``jobs/<job>/rest/<shard>.error.jsonl``    failed lines of such a shard
``jobs/<job>/rest/<shard>.<n>-<code>.jsonl`` its lines that never ran, after ``n`` commits
``jobs/<job>/joined/<attempt>/<n>.jsonl``  joined results of some shards, if a job has very many
``jobs/<job>/undone-<attempt>.jsonl``      the shards that a redrive runs, one per line
``jobs/<job>/publications.jsonl``          the parts to publish to the signal store, one per line
``jobs/<job>/published/<part>.json``       counts of their published answers (`contracts.publication`)
``jobs/<job>/outcome.json``                result of the job (`completion.merging`)
``jobs/<job>/output.jsonl``                the job's results
``jobs/<job>/error.jsonl``                 the job's failed lines, including invalid ones
========================================== ===================================================================

A redrive runs expired lines again, in another turn of their shard. The chunks and parts of that turn lie
below ``<shard>.<turn>`` instead of ``<shard>``. A finished turn never changes.

A job's identifier is ``batch_``, 8 characters of its model and 32 random ones. By the 8 characters, the role
of a worker reads and writes the jobs of its model only. By the others, S3 spreads jobs over partitions
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html). Identifiers of earlier
releases have the 32 random characters only.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, replace
from typing import Final, Self

#: Prefix of the jobs' objects.
JOBS_PREFIX: Final = "jobs/"
#: Prefix of files that teams upload through the API.
FILES_PREFIX: Final = "files/"
#: Prefix of the parts of incomplete uploads.
UPLOADS_PREFIX: Final = "uploads/"
_JOB: Final = "batch_"
_MARK_CHARACTERS: Final = 8
#: Regular expression of the identifiers of jobs.
JOB_PATTERN: Final = f"{_JOB}(?:[0-9a-f]{{{_MARK_CHARACTERS}}})?[0-9a-f]{{32}}"


def new_job(model: str) -> str:
    """Return a new identifier of a job.

    model: Name of the model of its queue.
    """
    return f"{_of_model(model)}{uuid.uuid4().hex}"


def jobs_of_model(model: str) -> tuple[str, str]:
    """Return patterns of IAM for the identifiers of a model's jobs. No other new job matches one.

    The second one is for jobs of every model that an earlier release began. They have to end, and can be
    redriven until their objects expire.
    """
    return f"{_of_model(model)}{'?' * 32}", f"{_JOB}{'?' * 32}"


def suspects_of_model(model: str) -> str:
    """Return the key of the turn at suspects in the table of progress. `jobs_of_model` covers it."""
    return f"{_of_model(model)}{'suspects':#>32}"


def _of_model(model: str) -> str:
    return _JOB + hashlib.sha256(model.encode()).hexdigest()[:_MARK_CHARACTERS]


@dataclass(frozen=True, slots=True)
class JobKeys:
    """Keys of one job."""

    job: str
    """The job's identifier."""

    @classmethod
    def of(cls, key: str) -> Self:
        """Return the keys of the job that an object belongs to.

        key: Key of an object of a job.
        """
        return cls(key.removeprefix(JOBS_PREFIX).partition("/")[0])

    @property
    def prefix(self) -> str:
        """Prefix of all objects of the job, with a slash at its end."""
        return f"{JOBS_PREFIX}{self.job}/"

    @property
    def request(self) -> str:
        """The job as it was submitted."""
        return f"{self.prefix}request.json"

    @property
    def segments(self) -> str:
        """The segments of its input."""
        return f"{self.prefix}segments.jsonl"

    @property
    def plan(self) -> str:
        """Totals of all segments."""
        return f"{self.prefix}plan.json"

    @property
    def invalid(self) -> str:
        """All invalid lines."""
        return f"{self.prefix}invalid.jsonl"

    @property
    def outcome(self) -> str:
        """Result of the job."""
        return f"{self.prefix}outcome.json"

    @property
    def publications(self) -> str:
        """The parts whose answers must be published to the signal store."""
        return f"{self.prefix}publications.jsonl"

    @property
    def published(self) -> str:
        """Prefix of the counts of published answers, with a slash at its end."""
        return f"{self.prefix}published/"

    def part(self, name: str) -> PartKeys:
        """Return the keys of one part."""
        return PartKeys(self.job, name)

    def undone(self, attempt: int | str) -> str:
        """Return the key of the list of shards that an attempt runs."""
        return f"{self.prefix}undone-{attempt}.jsonl"

    def joined_prefix(self, attempt: int) -> str:
        """Return the prefix of the joined results of some shards, with a slash at its end."""
        return f"{self.prefix}joined/{attempt}/"

    @property
    def chunks(self) -> str:
        """Prefix of the committed chunks of all shards, with a slash at its end."""
        return f"{self.prefix}chunks/"

    @property
    def parts(self) -> str:
        """Prefix of the results of the shards, with a slash at its end."""
        return f"{self.prefix}parts/"

    @property
    def rest(self) -> str:
        """Prefix of the results of unfinished shards, with a slash at its end."""
        return f"{self.prefix}rest/"

    @property
    def shards(self) -> str:
        """The list of shards, one per line."""
        return f"{self.prefix}shards.jsonl"

    @property
    def description(self) -> str:
        """The job description for workers."""
        return f"{self.prefix}job.json"

    @property
    def output(self) -> str:
        """The job's results."""
        return f"{self.prefix}output.jsonl"

    @property
    def error(self) -> str:
        """The job's failed lines."""
        return f"{self.prefix}error.jsonl"

    @property
    def images(self) -> str:
        """Prefix of the images that were generated for its lines, with a slash at its end."""
        return f"{self.prefix}images/"

    def segment(self, number: int) -> str:
        """Return the key of the report on a segment of the input."""
        return f"{self.prefix}segments/{number:06d}.json"

    def segment_ids(self, number: int) -> str:
        """Return the key of the sorted digests of a segment's custom_ids."""
        return f"{self.prefix}segments/{number:06d}.ids"

    def segment_errors(self, number: int) -> str:
        """Return the key of a segment's invalid lines."""
        return f"{self.prefix}segments/{number:06d}.error.jsonl"

    def shard(self, shard: str) -> ShardKeys:
        """Return the keys of one shard."""
        return ShardKeys(self.job, shard)


@dataclass(frozen=True, slots=True)
class ShardKeys:
    """Keys of one shard of a job."""

    job: str
    """The job's identifier."""
    shard: str
    """The shard's name within the job."""
    turn: int = 0
    """0 for all its lines. Each further turn runs the lines that expired in the turn before."""

    @property
    def next_turn(self) -> ShardKeys:
        """The keys of the shard's next turn."""
        return replace(self, turn=self.turn + 1)

    @property
    def _folder(self) -> str:
        """Name of the turn's folder among those of all shards."""
        return f"{self.shard}.{self.turn}" if self.turn else self.shard

    @property
    def lines(self) -> str:
        """The requests of the shard."""
        return f"{JOBS_PREFIX}{self.job}/shards/{self.shard}.jsonl"

    @property
    def chunks(self) -> str:
        """Prefix of the committed chunks, with a slash at its end."""
        return f"{JOBS_PREFIX}{self.job}/chunks/{self._folder}/"

    def chunk(self, sequence: int) -> str:
        """Return the key of a chunk. Keys sort in the order of their numbers."""
        return f"{self.chunks}{sequence:08d}.jsonl"

    def image(self, ordinal: int, number: int, ending: str) -> str:
        """Return the key of an image that was generated for a line.

        It is the same in every turn, so a line that runs again replaces its images.

        ordinal: The line's index in the shard.
        number: The image's index in the answer.
        ending: The end of the file's name, without a dot.
        """
        return f"{JobKeys(self.job).images}{self.shard}/{ordinal}-{number}.{ending}"

    @property
    def output(self) -> str:
        """All successful results."""
        return f"{JOBS_PREFIX}{self.job}/parts/{self._folder}/output.jsonl"

    @property
    def error(self) -> str:
        """All failed lines."""
        return f"{JOBS_PREFIX}{self.job}/parts/{self._folder}/error.jsonl"

    @property
    def expired(self) -> str:
        """All lines that expired at the deadline."""
        return f"{JOBS_PREFIX}{self.job}/parts/{self._folder}/expired.jsonl"

    @property
    def done(self) -> str:
        """Counts and token usage."""
        return f"{JOBS_PREFIX}{self.job}/parts/{self._folder}/done.json"

    @property
    def rest_output(self) -> str:
        """Answers of a turn that was unfinished when the job ended."""
        return f"{JOBS_PREFIX}{self.job}/rest/{self._folder}.output.jsonl"

    @property
    def rest_error(self) -> str:
        """Failed lines of such a turn, and lines that expired before it."""
        return f"{JOBS_PREFIX}{self.job}/rest/{self._folder}.error.jsonl"

    def rest_unrun(self, chunks: int, code: str) -> str:
        """Return the key of the rows of lines that never ran.

        chunks: Number of the turn's chunks, by which the lines are known that have ended.
        code: Error code of the rows.
        """
        return f"{JOBS_PREFIX}{self.job}/rest/{self._folder}.{chunks}-{code}.jsonl"


@dataclass(frozen=True, slots=True)
class PartKeys:
    """Keys of the results of one turn of a shard. Answers are published by turn."""

    job: str
    """The job's identifier."""
    part: str
    """The part's name within the job: that of the shard, plus the turn if there were several."""

    @property
    def lines(self) -> str:
        """The requests of the shard."""
        return f"{JOBS_PREFIX}{self.job}/shards/{self.part.partition('.')[0]}.jsonl"

    @property
    def output(self) -> str:
        """All successful results."""
        return f"{JOBS_PREFIX}{self.job}/parts/{self.part}/output.jsonl"

    @property
    def done(self) -> str:
        """Counts and token usage. Once this object exists, the part never changes."""
        return f"{JOBS_PREFIX}{self.job}/parts/{self.part}/done.json"

    @property
    def published(self) -> str:
        """Counts of the published answers. The object exists once all of them are published."""
        return f"{JOBS_PREFIX}{self.job}/published/{self.part}.json"
