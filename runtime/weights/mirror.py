"""Copies a model from the Hub into the bucket: `python3 -m weights.mirror`.

Run it again after an interruption: it copies only the files that are not complete. Bytes go from the Hub to
S3
through memory; no disk is used. Exit code 2 means that a retry is useless.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from weights.bucket import WeightsCopy
from weights.hub import Hub, HubError, HubFile
from weights.settings import MirrorSettings, WeightsSettingsError, read_settings

#: The Job does not retry after this exit code.
OF_NO_USE = 2


def mirror(settings: MirrorSettings) -> None:
    """Complete the copy, and keep the files that exist.

    Parameters
    ----------
    settings
        Source and destination of the copy.

    Raises
    ------
    HubError
        If the Hub refuses the model.
    CorruptFileError
        If the bytes of a file are wrong.
    """
    hub, bucket = Hub(settings.repository, settings.revision), WeightsCopy(settings.copy)
    files = hub.files()
    sizes = bucket.sizes()
    missing = [file for file in files if not bucket.holds(file, sizes)]
    print(f"{settings.repository}@{settings.revision}: {_amount(files)}, to copy {_amount(missing)}")
    if missing:
        bucket.delete_manifest()
        _copy(missing, hub, bucket, settings)
    bucket.write_manifest(
        {
            "repository": settings.repository,
            "revision": settings.revision,
            "bytes": sum(file.size for file in files),
            "files": [asdict(file) for file in files],
        }
    )
    print(f"complete: s3://{settings.copy.bucket}/{settings.copy.prefix}/")


def _copy(files: Sequence[HubFile], hub: Hub, bucket: WeightsCopy, settings: MirrorSettings) -> None:
    """Copy files, several of them in parallel."""
    begin = time.monotonic()
    with bucket.uploads(settings) as uploads:
        started = [(file, uploads.start(file, hub.open(file))) for file in files]
        for file, upload in started:
            upload.result()
            print(f"copied {file.path}: {file.size / 2**20:.0f} MiB, {file.digest}", flush=True)
    seconds = max(time.monotonic() - begin, 1e-3)
    print(f"{sum(file.size for file in files) / 2**20 / seconds:.0f} MiB/s over {seconds:.0f} s")


def _amount(files: Sequence[HubFile]) -> str:
    """Return the number of files and their size."""
    return f"{len(files)} files of {sum(file.size for file in files) / 2**30:.1f} GiB"


def main(environment: Mapping[str, str]) -> int:
    """Run with this environment and return the exit code. Errors for which a retry is useful are raised."""
    try:
        mirror(read_settings(environment))
    except (WeightsSettingsError, HubError) as error:
        print(f"error: {error}", file=sys.stderr)
        return OF_NO_USE
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
