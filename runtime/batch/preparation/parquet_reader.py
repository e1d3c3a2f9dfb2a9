"""The child process ``python -m batch.preparation.parquet_reader SOCKET BYTES``: rows of Parquet as JSON.

The parent sends requests over the socket: ``{"size": …}`` for the row groups of a file, with ``"rows_of":
[start, end]`` for their rows. The answers are the following, each any number of times:

- ``{"read": [start, end]}``, which waits for those bytes of the file;
- ``{"row_groups": [[rows, bytes], …]}``;
- ``{"rows": [[row, custom_id, reasons], …]}``, where an invalid row is null and has reasons;

The last answer is ``{"unreadable": reason, "line": …}`` or ``{"done": true}``. BYTES is the memory
limit of the process.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

from batch.preparation.input_text import UnreadableInputError
from batch.preparation.parquet_file import ParquetFile, batches


def main(socket: str, memory_bytes: str) -> None:
    """Answer requests until the parent closes the socket.

    socket: File descriptor of the socket.
    memory_bytes: Memory limit of the process.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes),) * 2)
    with Connection(int(socket)) as link:
        while True:
            try:
                question = json.loads(link.recv_bytes())
            except EOFError:
                return
            for answer in _answers(question, link):
                link.send_bytes(json.dumps(answer, ensure_ascii=False).encode())


def _answers(question: Mapping[str, Any], link: Connection) -> Iterator[dict[str, Any]]:
    """Iterate over the answers to a request."""

    def read(start: int, end: int) -> bytes:
        link.send_bytes(json.dumps({"read": [start, end]}).encode())
        return link.recv_bytes()

    try:
        file = ParquetFile(read, question["size"])
        if "rows_of" not in question:
            yield {"row_groups": [[each.rows, each.size] for each in file.row_groups]}
        else:
            for batch in batches(file, range(*question["rows_of"])):
                yield {"rows": batch}
    except UnreadableInputError as error:
        yield {"unreadable": str(error), "line": error.line}
    else:
        yield {"done": True}


if __name__ == "__main__":
    main(*sys.argv[1:])
