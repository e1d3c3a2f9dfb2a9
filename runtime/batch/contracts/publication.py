"""Counts of the answers that were published to the signal store."""

from __future__ import annotations

from dataclasses import dataclass

from inference_contracts.json_record import JsonRecord


@dataclass(frozen=True, slots=True)
class Published(JsonRecord):
    """Counts of the published answers of a part, or of all parts of a job."""

    written: int = 0
    """Answers that are in the store."""
    superseded: int = 0
    """Answers that lost against those of a later job, or that the store already had."""
    unfit: int = 0
    """Answers that cannot be a signal: without text, or with a custom_id that is too long for a key."""

    def __add__(self, other: Published) -> Published:
        return Published(
            self.written + other.written, self.superseded + other.superseded, self.unfit + other.unfit
        )
