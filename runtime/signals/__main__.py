"""Reads signals from a shell: ``python -m signals NAME [KEY …]``. Without keys it reads standard input.

Prints one line of JSON per key that has a value: ``name``, ``key`` and the record. Environment variables name
the store (`signals.connection`). Exit code 3 means that a key has no value, 2 that the store did not answer
or that settings are wrong; Python itself uses 1 for unexpected errors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from signals.connection import BULK_TIMEOUTS
from signals.reading import open_reader
from signals.record import InvalidSignalError
from signals.store_errors import SettingsError, StoreError, StoreRefusedError

MISSING, NO_ANSWER = 3, 2


def main(name: str, keys: Sequence[str]) -> int:
    """Print signals.

    Parameters
    ----------
    name
        Name of the signals.
    keys
        Keys of the signals.

    Returns
    -------
    int
        The exit code.
    """
    try:
        with open_reader(timeouts=BULK_TIMEOUTS) as reader:
            found = reader.get_many(name, keys)
    except (SettingsError, InvalidSignalError) as error:
        return _fail(str(error))
    except StoreRefusedError as error:
        return _fail(f"the store refuses: {error}")
    except StoreError as error:
        return _fail(f"the store does not answer: {error}")
    for key, signal in found.items():
        print(json.dumps({"name": name, "key": key, **json.loads(signal.to_json())}))
    return MISSING if any(key not in found for key in keys) else 0


def _fail(reason: str) -> int:
    print(reason, file=sys.stderr)
    return NO_ANSWER


if __name__ == "__main__":
    NAME, *KEYS = sys.argv[1:]
    sys.exit(main(NAME, KEYS or [line for line in sys.stdin.read().split("\n") if line]))
