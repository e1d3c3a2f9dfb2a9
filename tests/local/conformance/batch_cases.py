"""What batch must do, whatever it runs on."""

from __future__ import annotations

from collections.abc import Callable

from tests.local.conformance.batch_platforms import BatchPlatform


def a_batch_job_answers_every_line_once(platform: BatchPlatform) -> None:
    outcome = platform.run_job()
    assert outcome.state == "completed"
    assert outcome.workers_killed > 0
    assert outcome.is_whole, outcome


CASES: tuple[Callable[[BatchPlatform], None], ...] = (a_batch_job_answers_every_line_once,)
