"""Cut the first minutes of Mooncake's conversation trace into the excerpt for replays.

    python scripts/record_trace_excerpt.py PATH/TO/conversation_trace.jsonl[.gz] [--seconds 300]

The original: https://github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl,
under Apache-2.0.
The records are unchanged. The same input gives the same output.
"""

import argparse
import gzip
import json
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "inference_blueprints" / "measure" / "replay" / "data"
NAME = "mooncake_conversation"


def main() -> None:
    """Write the excerpt and its description."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("original", type=Path, help="the trace, one JSON object per line, optionally gzip")
    parser.add_argument("--seconds", type=int, default=300, help="length of the excerpt, from the start")
    arguments = parser.parse_args()
    lines = _lines(arguments.original)
    kept = [line for line in lines if json.loads(line)["timestamp"] < arguments.seconds * 1000]
    excerpt = gzip.compress("".join(kept).encode(), compresslevel=9, mtime=0)
    (DATA / f"{NAME}.jsonl.gz").write_bytes(excerpt)
    cut = f"the first {arguments.seconds} seconds, {len(kept)} of {len(lines)} requests, records unchanged"
    description = {
        "name": "Mooncake conversation trace",
        "source": "https://github.com/kvcache-ai/Mooncake (FAST25-release/traces/conversation_trace.jsonl)",
        "licence": "Apache-2.0",
        "cut": cut,
        "blockTokens": 512,
        "timestampStepSeconds": 3,
    }
    (DATA / f"{NAME}.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    print(f"{NAME}.jsonl.gz: {len(kept)} requests, {len(excerpt)} bytes")


def _lines(path: Path) -> list[str]:
    """Read a text file that may be compressed."""
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return text.decode().splitlines(keepends=True)


if __name__ == "__main__":
    main()
