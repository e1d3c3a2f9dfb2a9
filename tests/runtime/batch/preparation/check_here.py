"""The program of the tests of memory: checks one input in a folder, and prints what it needed.

Its arguments are the folder, the format and the end of the segment; it prints the lines, those that are not
valid, and the MiB that this process and its child had at most, as JSON.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

from batch.contracts.request import Input, InputFormat, JobRequest, RequestTemplate
from batch.objects import Objects
from batch.preparation.checking import check_segment
from batch.preparation.segments import Segment
from inference_contracts.batch_configuration import Capacity


class Folder:
    """Objects in a folder; what is written is counted and thrown away."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def size(self, _: str, key: str) -> tuple[int, str]:
        return (self._folder / key).stat().st_size, "etag"

    def stream(self, _: str, key: str, *, start: int, **__: object) -> Iterator[bytes]:
        with (self._folder / key).open("rb") as file:
            file.seek(start)
            while piece := file.read(2**20):
                yield piece

    def part_of(self, _: str, key: str, **__: object) -> Callable[[int, int], bytes]:
        def read(start: int, end: int) -> bytes:
            with (self._folder / key).open("rb") as file:
                file.seek(start)
                return file.read(end - start)

        return read

    def write(self, *_: object, **__: object) -> None:
        pass

    def write_stream(self, _: str, pieces: Iterable[bytes], **__: object) -> None:
        for _piece in pieces:
            pass


def main(folder: str, form: InputFormat, end: int) -> None:
    request = JobRequest(
        job="j1",
        team="search",
        queue="nightly",
        model="qwen",
        endpoint="/v1/chat/completions",
        inputs=(Input("inputs", f"in.{form}", form),),
        deadline=4e9,
        budget_usd=1.0,
        capacity=Capacity(1.0, 1.0, 1.0, 1.0),
        template=RequestTemplate("What is {{ name }}?"),
    )
    report = check_segment(request, Segment(0, 0, 0, end, "etag"), cast(Objects, Folder(Path(folder))))
    # Of this program alone; what getrusage says has the memory of whoever started it.
    own = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert own
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps([report.lines, report.invalid, int(own[1]) // 1024, child // 1024]))


if __name__ == "__main__":
    main(sys.argv[1], cast(InputFormat, sys.argv[2]), int(sys.argv[3]))
