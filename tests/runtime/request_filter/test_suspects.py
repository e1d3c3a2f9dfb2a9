"""Which requests are refused after deaths of workers, and for how long."""

from __future__ import annotations

import pytest
from request_filter.refused_request import RefusedRequestError
from request_filter.suspects import SuspectMemory

POISON, OTHER = b"poison", b"other"


@pytest.fixture
def suspects() -> SuspectMemory:
    return SuspectMemory(deaths=2, refused_seconds=100, most_refused_seconds=300)


def _refused(suspects: SuspectMemory, digest: bytes, now: float) -> int | None:
    """Return the seconds after which a request may be asked again; None if it is passed on."""
    try:
        suspects.answered(suspects.start(digest, now))
    except RefusedRequestError as refused:
        return refused.retry_after
    return None


def test_a_request_that_fails_with_two_deaths_is_refused_for_a_time(suspects: SuspectMemory) -> None:
    """Red if a request that ends its worker, and the one it moves to, may do so again at once."""
    run = suspects.start(POISON, 10)
    suspects.failed(run, 12)
    # Both deaths are found after the answer.
    suspects.died(11, 13)
    suspects.died(11, 13)
    assert _refused(suspects, POISON, 14) == 100
    assert _refused(suspects, OTHER, 14) is None
    # A request that is answered afterwards is no longer suspected.
    assert _refused(suspects, POISON, 114) is None


def test_two_attempts_count_together_whatever_their_status(suspects: SuspectMemory) -> None:
    """Red if a caller that hangs up, or gets no error, is never blamed."""
    for start in (10, 30):
        suspects.failed(suspects.start(POISON, start), start + 1)
        suspects.died(start, start + 2)
    assert _refused(suspects, POISON, 33) is not None


def test_the_time_doubles_up_to_a_maximum(suspects: SuspectMemory) -> None:
    """Red if a caller who tries without end costs two workers every time."""
    now, seconds = 0.0, []
    for _ in range(4):
        suspects.failed(suspects.start(POISON, now), now + 1)
        suspects.died(now, now + 1)
        suspects.died(now, now + 1)
        waits = _refused(suspects, POISON, now + 1) or 0
        seconds.append(waits - 1)
        now += waits + 1
    assert seconds == [100, 200, 300, 300]


def test_bystanders_are_cleared_by_their_answer(suspects: SuspectMemory) -> None:
    """Red if one of 200 requests that shared workers with the poison is refused for good."""
    runs = {str(each).encode(): suspects.start(str(each).encode(), 0) for each in range(200)}
    poison = suspects.start(POISON, 1)
    suspects.died(0, 2)
    # All but ten have moved to another worker; these moved to the one that dies now.
    suspects.failed(poison, 3)
    lost = [f"{each}".encode() for each in range(10)]
    for digest in lost:
        suspects.failed(runs[digest], 3)
    suspects.died(2, 4)
    for digest in runs.keys() - set(lost):
        suspects.answered(runs[digest])
    assert [digest for digest in runs if _refused(suspects, digest, 5) is not None] == lost
    assert _refused(suspects, POISON, 5) is not None
    assert not [digest for digest in runs if _refused(suspects, digest, 105) is not None]


def _suspected(suspects: SuspectMemory, *digests: bytes) -> None:
    """Let requests be in progress at two deaths, until second 6."""
    runs = [suspects.start(digest, 0) for digest in digests]
    suspects.died(0, 2)
    suspects.died(3, 5)
    for run in runs:
        suspects.failed(run, 6)


def test_a_suspect_that_is_tried_again_is_refused_after_one_more_death(suspects: SuspectMemory) -> None:
    """Red if each further try may cost two workers, although the request is known."""
    _suspected(suspects, POISON)
    suspects.failed(suspects.start(POISON, 105), 107)
    suspects.died(106, 108)
    assert _refused(suspects, POISON, 109) == 200


def test_suspects_are_tried_one_after_the_other(suspects: SuspectMemory) -> None:
    """Red if a bystander is tried beside what ends workers, and is suspected of its next death."""
    _suspected(suspects, POISON, OTHER)
    trial = suspects.start(POISON, 110)
    # While it is tried, and while nobody knows yet why it failed.
    assert _refused(suspects, OTHER, 111) == 3
    suspects.failed(trial, 112)
    assert _refused(suspects, OTHER, 114) == 3
    suspects.died(111, 114)
    assert _refused(suspects, OTHER, 115.5) is None
    assert _refused(suspects, POISON, 115.5) is not None


def test_a_long_answer_does_not_keep_other_suspects_waiting(suspects: SuspectMemory) -> None:
    """Red if one request of an hour refuses all other suspects for that hour."""
    _suspected(suspects, POISON, OTHER)
    suspects.start(POISON, 110)
    assert _refused(suspects, OTHER, 119) == 3
    assert _refused(suspects, OTHER, 121) is None


def test_requests_that_ended_before_a_worker_was_last_seen_are_not_concerned(suspects: SuspectMemory) -> None:
    """Red if a request that failed earlier, for another reason, counts as a cause."""
    suspects.failed(suspects.start(OTHER, 1), 2)
    assert suspects.died(3, 4) == 0


def test_a_failed_request_waits_until_its_worker_has_been_checked(suspects: SuspectMemory) -> None:
    """Red if a caller that repeats at once ends further workers before the first death is known."""
    run = suspects.start(POISON, 1)
    suspects.failed(run, 2)
    suspects.check(run, 2, 3)
    assert _refused(suspects, POISON, 3) == 3
    assert _refused(suspects, POISON, 5.5) is None


def test_checks_that_are_over_are_forgotten(suspects: SuspectMemory) -> None:
    """Red if each failed request takes memory for good."""
    for second in range(50):
        run = suspects.start(b"%d" % second, second)
        suspects.failed(run, second)
        suspects.check(run, second, 3)
    assert len(suspects._checking) == 3


def test_the_memory_survives_a_start(suspects: SuspectMemory) -> None:
    """Red if a container that starts again, as after the death of its engine, forgets why it died."""
    suspects.start(POISON, 10)
    suspects.died(9, 11)
    again = SuspectMemory(deaths=2, refused_seconds=100, most_refused_seconds=300)
    again.restore(suspects.as_record(now=11, wall=1_000_011), now=1, wall=1_000_021)
    again.failed(again.start(POISON, 2), 3)
    again.died(2, 3)
    assert _refused(again, POISON, 4) == 100


def test_a_time_that_is_nearly_over_still_counts(suspects: SuspectMemory) -> None:
    """Red if a request is passed on before the time that its caller was told."""
    suspects.failed(suspects.start(POISON, 10), 12)
    suspects.died(11, 13)
    suspects.died(11, 13)
    assert _refused(suspects, POISON, 112.5) == 1


def test_a_death_of_the_day_before_counts_no_more(suspects: SuspectMemory) -> None:
    """Red if a request that met one death on each of two days is refused."""
    day = 24 * 3600.0
    for now in (0.0, day + 100):
        suspects.failed(suspects.start(POISON, now), now + 1)
        suspects.died(now, now + 2)
    assert _refused(suspects, POISON, day + 103) is None


def test_ten_thousand_requests_are_remembered_and_the_oldest_goes_first(suspects: SuspectMemory) -> None:
    """Red if the memory of a filter grows with every request that a death meets."""
    suspects.failed(suspects.start(POISON, 0), 1)
    suspects.died(0, 1)
    for number in range(10_000):
        suspects.start(number.to_bytes(4, "big"), 100)
    suspects.died(100, 101)
    remembered = suspects.as_record(102, 102)
    assert (len(remembered), POISON.hex() in remembered) == (10_000, False)


def test_a_request_that_began_after_a_death_is_not_concerned(suspects: SuspectMemory) -> None:
    """Red if a death that is found late is held against what came after it."""
    suspects.failed(suspects.start(OTHER, 20), 21)
    assert suspects.died(9, 11) == 0


def test_another_process_refuses_until_the_same_moment(suspects: SuspectMemory) -> None:
    """Red if the record has the clock of the process that wrote it: that of the next one begins anew."""
    suspects.failed(suspects.start(POISON, 10), 12)
    suspects.died(11, 13)
    suspects.died(11, 13)
    after = SuspectMemory(deaths=2, refused_seconds=100, most_refused_seconds=300)
    after.restore(suspects.as_record(now=13, wall=1_000_000), now=500, wall=1_000_010)
    assert _refused(after, POISON, 500) == 91
