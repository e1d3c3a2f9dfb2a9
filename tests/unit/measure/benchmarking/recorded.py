"""Records as aiperf 0.12.0 writes them, and as the program prints them."""

import base64
import gzip
import json
from typing import Any

ANSWERED: dict[str, Any] = {
    "metadata": {"request_start_ns": 2_000_000_000, "request_end_ns": 2_700_000_000},
    "metrics": {
        "time_to_first_token": {"value": 80.0, "unit": "ms"},
        "request_latency": {"value": 650.0, "unit": "ms"},
        "usage_prompt_tokens": {"value": 317, "unit": "tokens"},
        "usage_completion_tokens": {"value": 20, "unit": "tokens"},
        "usage_prompt_cache_read_tokens": {"value": 64, "unit": "tokens"},
    },
    "error": None,
}
FAILED = {
    "metadata": {"request_start_ns": 1_000_000_000, "request_end_ns": 1_000_000_000},
    "metrics": {},
    "error": {"code": 404, "type": "Not Found", "message": "Model not found"},
}


def said(*records: dict[str, Any]) -> str:
    """What the program prints of records, among other lines of a log."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    packed = base64.b64encode(gzip.compress(text.encode())).decode()
    pieces = [packed[start : start + 50] for start in range(0, len(packed), 50)]
    return "\n".join(["a warning of aiperf's", *(f"records {piece}" for piece in pieces), ""])
