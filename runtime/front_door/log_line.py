"""What a line of Envoy's access log says a request has cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from front_door.costs import IMAGE_PATHS
from front_door.reservations import Promise, Signer
from inference_contracts import door_log
from inference_contracts.usage_record import CostBasis, UsageRecord

#: Flags of an answer that did not come to its end: the caller or the model went, or a time limit passed
#: (https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/observability/access_log/usage).
_CUT: Final = frozenset({"DC", "UC", "UR", "LR", "SI", "UT", "DT", "DR", "UMSDR", "DPE", "UPE", "OM"})
_OK: Final = 200
_FIRST_ERROR: Final = 400
#: What a target answers that has no room (Dynamo 1.6.1 and llm-d answer 503 or 529).
FULL: Final = frozenset({503, 529})


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that has ended."""

    line: dict[str, Any]
    promise: Promise
    nano: int
    tokens: int
    basis: CostBasis

    @property
    def status(self) -> int:
        """Status of the answer. 0 if there was none."""
        return _whole(self.line.get("status"))

    def text(self, name: str) -> str | None:
        """Return a field of the line. None if Envoy has no value."""
        value = self.line.get(name)
        return None if value in (None, "", "-") else str(value)

    def record(self, replica: str) -> UsageRecord:
        """Return its usage record."""
        return UsageRecord(
            id=self.text("id") or "",
            time=self.text("start") or "",
            team=self.text("team") or "",
            project=self.text("project"),
            key=self.text("key"),
            caller=self.text("caller"),
            model=self.text("model") or "",
            target=self.text("target") or "",
            path=self.text("path") or "",
            status=self.status,
            input_tokens=_whole(self.line.get(door_log.INPUT_TOKENS)),
            output_tokens=_whole(self.line.get(door_log.OUTPUT_TOKENS)),
            reserved_nano=self.promise.nano,
            cost_nano=self.nano,
            basis=self.basis,
            milliseconds=_whole(self.line.get("ms")),
            stream=self.text("stream") == "true",
            replica=replica,
        )


def read_line(content: bytes, signer: Signer) -> Ended | None:
    """Read a line. Return None if it is not that of a request that this replica has admitted."""
    try:
        line = json.loads(content)
    except ValueError:  # cut by a full disk, or a crash of Envoy
        return None
    header = line.get("reservation") if isinstance(line, dict) else None
    promise = signer.read(header) if isinstance(header, str) else None
    if promise is None:
        return None
    nano, tokens, basis = cost_of(line, promise)
    return Ended(line, promise, nano, tokens, basis)


def cost_of(line: dict[str, Any], promise: Promise) -> tuple[int, int, CostBasis]:
    """Return nano-dollars, tokens, and how they are known.

    - Usage that the engine reported counts, also that of a stream until it was cut.
    - A cut request that had reached its target without a count costs its whole reservation: the target has
      worked, and callers could else read everything but the last byte for nothing. A stream that was cut
      before its first chunk costs its prompt.
    - Errors of the target cost nothing.
    - An answer without usage costs its whole reservation.
    """
    prices, status = promise.prices, _whole(line.get("status"))
    used_in, used_out = line.get(door_log.INPUT_TOKENS), line.get(door_log.OUTPUT_TOKENS)
    is_cut = bool(_CUT & set(str(line.get("flags") or "").split(",")))
    images = promise.images if str(line.get("path")).startswith(IMAGE_PATHS) else 0
    if isinstance(used_in, int | float) or isinstance(used_out, int | float):
        tokens_in, tokens_out = _whole(used_in), _whole(used_out)
        nano = tokens_in * prices.input_token + tokens_out * prices.output_token + images * prices.image
        return nano, tokens_in + tokens_out, "cut" if is_cut else "usage"
    if status >= _FIRST_ERROR or line.get("upstream") in (None, "", "-"):
        return 0, 0, "none"
    if is_cut and line.get("stream") == "true":
        return promise.input_tokens * prices.input_token, promise.input_tokens, "cut"
    return promise.nano, promise.input_tokens + promise.output_tokens, "reservation"


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and value >= 0 else 0
