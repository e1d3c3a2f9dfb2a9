"""What a line of Envoy's access log says a request has cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from front_door.costs import IMAGE_PATHS, SEVERAL_PROMPTS
from front_door.reservations import Promise, Signer
from inference_contracts import door_log
from inference_contracts.usage_record import CostBasis, UsageRecord

#: Flags of an answer that did not come to its end: the caller or the model went, or a time limit passed
#: (https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/observability/access_log/usage).
_CUT: Final = frozenset({"DC", "UC", "UR", "LR", "SI", "UT", "DT", "DR", "UMSDR", "DPE", "UPE", "OM"})
#: Fewer bytes than any event of a stream has that carries a token: those of chat have over 150.
_LEAST_EVENT_BYTES: Final = 64
_FIRST_ERROR: Final = 400
#: Detail of an answer that had no room in Envoy's buffer: the model has worked
#: (https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/http/http_conn_man/response_code_details).
_TOO_LARGE: Final = "response_payload_too_large"
#: What a target answers that has no room: Dynamo 1.6.1 529 while all workers are busy, llm-d 429.
_FULL: Final = frozenset({429, 529})
_UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True)
class SettledCost:
    """What a request has cost."""

    input_tokens: int
    output_tokens: int
    nano: int
    basis: CostBasis

    @property
    def tokens(self) -> int:
        """Tokens of prompt and answer."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class EndedRequest:
    """A request that has ended."""

    line: dict[str, Any]
    promise: Promise
    cost: SettledCost

    @property
    def status(self) -> int:
        """Status of the answer. 0 if there was none."""
        return _whole(self.line.get("status"))

    @property
    def says_full(self) -> bool:
        """Whether its target had no room for it, or no worker.

        The filter beside an entry point refuses with 503 and ``retry-after`` what has ended workers
        (`inference_contracts.request_filter`): that says nothing of other requests, and whoever sends such a
        one would else close the target for all. Dynamo and llm-d state no time.
        """
        if self.status != _UNAVAILABLE:
            return self.status in _FULL
        return self.text("upstream") is None or self.text("retryAfter") is None

    @property
    def added_seconds(self) -> float | None:
        """Time that the door added before the model had the request. None if the model did not get it."""
        value = self.line.get(door_log.ADDED)
        return value / 1e6 if isinstance(value, int | float) and value >= 0 else None

    def text(self, name: str) -> str | None:
        """Return a field of the line. None if Envoy has no value."""
        value = self.line.get(name)
        return None if value in (None, "", "-") else str(value)

    def record(self, replica: str) -> UsageRecord:
        """Return its usage record."""
        return UsageRecord(
            id=self.text("id") or "",
            reservation=self.promise.id,
            user=self.text("user"),
            day=self.promise.team.day,
            month=self.promise.team.month,
            time=self.text("start") or "",
            team=self.text("team") or "",
            project=self.text("project"),
            key=self.text("key"),
            caller=self.text("caller"),
            model=self.text("model") or "",
            target=self.text("target") or "",
            path=self.text("path") or "",
            status=self.status,
            input_tokens=self.cost.input_tokens,
            output_tokens=self.cost.output_tokens,
            reserved_nano=self.promise.nano,
            cost_nano=self.cost.nano,
            basis=self.cost.basis,
            milliseconds=_whole(self.line.get("ms")),
            stream=self.text("stream") == "true",
            replica=replica,
        )


def read_line(content: bytes, signer: Signer) -> EndedRequest | None:
    """Read a line. Return None if it is not that of a request that this replica has admitted."""
    try:
        line = json.loads(content)
    except ValueError:  # cut by a full disk, or a crash of Envoy
        return None
    header = line.get("reservation") if isinstance(line, dict) else None
    promise = signer.read(header) if isinstance(header, str) else None
    if promise is None:
        return None
    return EndedRequest(line, promise, cost_of(line, promise))


def request_without_decision(content: bytes) -> str | None:
    """Return the identifier of a request that ended without a decision. None if the line is another."""
    if b'"reservation":' in content:
        return None
    try:
        line = json.loads(content)
    except ValueError:
        return None
    found = line.get("id") if isinstance(line, dict) else None
    return found if isinstance(found, str) else None


def cost_of(line: dict[str, Any], promise: Promise) -> SettledCost:
    """Return what a request has cost, and how that is known.

    - Usage that the engine reported counts, also that of a stream until it was cut. Of a stream with several
      answers, each event has the usage of its own answer only (``include_continuous_usage`` in
      ``entrypoints/openai/chat_completion/serving.py`` of vLLM): it is taken times their number, or what the
      bytes can have, if that is more. Of a list of prompts, all count.
    - A stream that was cut and has no usage costs its whole prompt, and as many tokens as its bytes can have.
    - Another answer that was cut after it had reached its target costs its whole reservation: the target has
      worked, and callers could else read everything but the last byte for nothing.
    - Errors of the target cost nothing. An answer that is too large for Envoy costs its whole reservation.
    - An answer without usage costs its whole reservation.
    """
    prices, status = promise.prices, _whole(line.get("status"))
    used_in, used_out = line.get(door_log.INPUT_TOKENS), line.get(door_log.OUTPUT_TOKENS)
    is_cut = bool(_CUT & set(str(line.get("flags") or "").split(",")))
    images = promise.images if str(line.get("path")).startswith(IMAGE_PATHS) else 0

    def costs(tokens_in: int, tokens_out: int, basis: CostBasis) -> SettledCost:
        nano = tokens_in * prices.input_token + tokens_out * prices.output_token + images * prices.image
        return SettledCost(tokens_in, tokens_out, nano, basis)

    if _is_count(used_in) or _is_count(used_out):
        if is_cut and line.get("stream") == "true" and (choices := _choices(line)) > 1:
            several = max(_whole(used_out) * choices, _whole(line.get("sent")) // _LEAST_EVENT_BYTES)
            has_prompts = line.get("path") == SEVERAL_PROMPTS
            prompt = promise.input_tokens if has_prompts else _whole(used_in)
            return costs(prompt, min(several, promise.output_tokens), "cut")
        return costs(_whole(used_in), _whole(used_out), "cut" if is_cut else "usage")
    is_error = status >= _FIRST_ERROR and line.get("details") != _TOO_LARGE
    if is_error or line.get("upstream") in (None, "", "-"):
        return SettledCost(0, 0, 0, "none")
    if is_cut and line.get("stream") == "true":
        most = _whole(line.get("sent")) // _LEAST_EVENT_BYTES
        return costs(promise.input_tokens, min(most, promise.output_tokens), "cut")
    return costs(promise.input_tokens, promise.output_tokens, "reservation")


def _choices(line: dict[str, Any]) -> int:
    """Return how many answers a request asked for, of all its prompts together."""
    text = str(line.get("choices") or "")
    return int(text) if text.isdecimal() else 1


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and value >= 0


def _whole(value: Any) -> int:
    return int(value) if _is_count(value) else 0
