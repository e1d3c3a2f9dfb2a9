"""Waits until the copy is complete: `python3 -m weights.wait`, before a worker streams weights from it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

from weights.bucket import WeightsCopy
from weights.settings import WeightsSettingsError, read_copy

_PERIOD_SECONDS = 10.0


def main(environment: Mapping[str, str], *, period_seconds: float = _PERIOD_SECONDS) -> int:
    """Wait and return the exit code.

    Parameters
    ----------
    period_seconds
        Time between two checks.
    """
    try:
        copy = read_copy(environment)
    except WeightsSettingsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    bucket = WeightsCopy(copy)
    while not bucket.is_complete():
        print(
            f"waiting for s3://{copy.bucket}/{copy.manifest_key}: the model is still being copied", flush=True
        )
        time.sleep(period_seconds)
    print(f"complete: s3://{copy.bucket}/{copy.prefix}/")
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
