"""Where the objects of a job lie in the batch bucket.

========================================== ===================================================================
Key                                        Object
========================================== ===================================================================
``jobs/<job>/request.json``                the job as it was submitted (`contracts.request`)
``jobs/<job>/job.json``                    what workers need to know of the job (`contracts.description`)
``jobs/<job>/segments.jsonl``              the segments into which its input is cut
``jobs/<job>/segments/<n>.json``           what checking one segment of the input found
``jobs/<job>/segments/<n>.ids``            digests of the custom_ids of that segment, sorted
``jobs/<job>/segments/<n>.error.jsonl``    its lines that are not valid
``jobs/<job>/plan.json``                   sums over all segments, price, hours, and what is wrong
``jobs/<job>/invalid.jsonl``               all lines that are not valid, as rows of the error file
``jobs/<job>/shards.jsonl``                the shards, a line each
``jobs/<job>/shards/<shard>.jsonl``        the lines of a shard (`contracts.shard`), never changed
``jobs/<job>/chunks/<shard>/<n>.jsonl``    results in the order in which they were finished; the commit
``jobs/<job>/parts/<shard>/output.jsonl``  all results of a shard that succeeded
``jobs/<job>/parts/<shard>/error.jsonl``   all of its lines that failed
``jobs/<job>/parts/<shard>/expired.jsonl`` all of its lines that the deadline overtook
``jobs/<job>/parts/<shard>/done.json``     counts and usage; written last
``jobs/<job>/rest/<shard>.output.jsonl``   what a shard that was not done had answered when the job ended
``jobs/<job>/rest/<shard>.error.jsonl``    what of it had failed then
``jobs/<job>/undone-<attempt>.jsonl``      the shards of an attempt, a line each, that a redrive runs
``jobs/<job>/publications.jsonl``          the parts whose answers go to the signal store, a line each
``jobs/<job>/published/<part>.json``       what became of them there (`contracts.publication`)
``jobs/<job>/outcome.json``                what became of the job (`completion.merging`)
``jobs/<job>/output.jsonl``                the job's results
``jobs/<job>/error.jsonl``                 the job's failed lines, those included that never were valid
========================================== ===================================================================

Lines that the deadline overtook are done again by a redrive: in another turn of their shard, whose chunks and
parts lie below ``<shard>.<turn>`` in place of ``<shard>``. A turn that is done never changes.

A job's identifier begins at random, so that S3 spreads jobs over partitions of their own
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html).
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class JobKeys:
    """Keys of one job.

    Parameters
    ----------
    job
        The job's identifier.
    """

    job: str

    @property
    def prefix(self) -> str:
        """Prefix of everything that the job has, with a slash at its end."""
        return f"jobs/{self.job}/"

    @property
    def request(self) -> str:
        """The job as it was submitted."""
        return f"{self.prefix}request.json"

    @property
    def segments(self) -> str:
        """The segments into which its input is cut."""
        return f"{self.prefix}segments.jsonl"

    @property
    def plan(self) -> str:
        """Sums over all segments."""
        return f"{self.prefix}plan.json"

    @property
    def invalid(self) -> str:
        """All lines that are not valid."""
        return f"{self.prefix}invalid.jsonl"

    @property
    def outcome(self) -> str:
        """What became of the job."""
        return f"{self.prefix}outcome.json"

    @property
    def publications(self) -> str:
        """The parts whose answers are still to go to the signal store."""
        return f"{self.prefix}publications.jsonl"

    @property
    def published(self) -> str:
        """Prefix of what became of answers in the signal store, with a slash at its end."""
        return f"{self.prefix}published/"

    def part(self, name: str) -> PartKeys:
        """Return the keys of one part."""
        return PartKeys(self.job, name)

    def undone(self, attempt: int) -> str:
        """Return the key of the shards that an attempt runs."""
        return f"{self.prefix}undone-{attempt}.jsonl"

    @property
    def parts(self) -> str:
        """Prefix of what the shards left, with a slash at its end."""
        return f"{self.prefix}parts/"

    @property
    def shards(self) -> str:
        """The shards, a line each."""
        return f"{self.prefix}shards.jsonl"

    @property
    def description(self) -> str:
        """What workers need to know of the job."""
        return f"{self.prefix}job.json"

    @property
    def output(self) -> str:
        """The job's results."""
        return f"{self.prefix}output.jsonl"

    @property
    def error(self) -> str:
        """The job's failed lines."""
        return f"{self.prefix}error.jsonl"

    def segment(self, number: int) -> str:
        """Return the key of what checking a segment of the input found."""
        return f"{self.prefix}segments/{number:06d}.json"

    def segment_ids(self, number: int) -> str:
        """Return the key of the digests of a segment's custom_ids."""
        return f"{self.prefix}segments/{number:06d}.ids"

    def segment_errors(self, number: int) -> str:
        """Return the key of a segment's lines that are not valid."""
        return f"{self.prefix}segments/{number:06d}.error.jsonl"

    def shard(self, shard: str) -> ShardKeys:
        """Return the keys of one shard."""
        return ShardKeys(self.job, shard)


@dataclass(frozen=True, slots=True)
class ShardKeys:
    """Keys of one shard of a job.

    Parameters
    ----------
    job
        The job's identifier.
    shard
        The shard's name within the job.
    turn
        0 for all its lines; each further one is for those that the one before had no time for.
    """

    job: str
    shard: str
    turn: int = 0

    @property
    def next_turn(self) -> ShardKeys:
        """The keys of the shard's next turn."""
        return replace(self, turn=self.turn + 1)

    @property
    def _folder(self) -> str:
        """Where the turn is, among those of all shards."""
        return f"{self.shard}.{self.turn}" if self.turn else self.shard

    @property
    def lines(self) -> str:
        """The requests of the shard."""
        return f"jobs/{self.job}/shards/{self.shard}.jsonl"

    @property
    def chunks(self) -> str:
        """Prefix of the committed chunks, with a slash at its end."""
        return f"jobs/{self.job}/chunks/{self._folder}/"

    def chunk(self, sequence: int) -> str:
        """Return the key of a chunk; keys sort as their numbers do."""
        return f"{self.chunks}{sequence:08d}.jsonl"

    @property
    def output(self) -> str:
        """All results that succeeded."""
        return f"jobs/{self.job}/parts/{self._folder}/output.jsonl"

    @property
    def error(self) -> str:
        """All lines that failed."""
        return f"jobs/{self.job}/parts/{self._folder}/error.jsonl"

    @property
    def expired(self) -> str:
        """All lines that the deadline overtook."""
        return f"jobs/{self.job}/parts/{self._folder}/expired.jsonl"

    @property
    def done(self) -> str:
        """Counts and usage."""
        return f"jobs/{self.job}/parts/{self._folder}/done.json"

    @property
    def rest_output(self) -> str:
        """What was answered of a turn that was not done when the job ended."""
        return f"jobs/{self.job}/rest/{self._folder}.output.jsonl"

    @property
    def rest_error(self) -> str:
        """What had failed of such a turn, and what had expired before it."""
        return f"jobs/{self.job}/rest/{self._folder}.error.jsonl"


@dataclass(frozen=True, slots=True)
class PartKeys:
    """Keys of what a turn of a shard has left, by which its answers are published.

    Parameters
    ----------
    job
        The job's identifier.
    part
        The part's name within the job: the shard's, and the turn's where there were several.
    """

    job: str
    part: str

    @property
    def lines(self) -> str:
        """The requests of the shard."""
        return f"jobs/{self.job}/shards/{self.part.partition('.')[0]}.jsonl"

    @property
    def output(self) -> str:
        """All results that succeeded."""
        return f"jobs/{self.job}/parts/{self.part}/output.jsonl"

    @property
    def done(self) -> str:
        """Counts and usage; what else there is of the part never changes when this is there."""
        return f"jobs/{self.job}/parts/{self.part}/done.json"

    @property
    def published(self) -> str:
        """What became of its answers in the signal store; there when all of them are."""
        return f"jobs/{self.job}/published/{self.part}.json"
