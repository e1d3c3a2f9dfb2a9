"""Requests that come in: their lengths, rates and images."""

from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, PrivateAttr, Tag

from inference_blueprints.spec.section import Choice, Section
from inference_blueprints.spec.sections.images.keys import ImageRequests


class TokenLengths(Section):
    """Lengths of prompts or answers, in tokens, such as `{mean: 1000, max: 4000}`."""

    mean: int = Field(ge=1, le=10_000_000)
    """Mean length, in tokens."""
    max: int | None = Field(default=None, ge=1, le=10_000_000)
    """Longest, in tokens, at least `mean`. Workers are planned to accept it. Without it, four times the
    mean."""


def _form_of_lengths(value: Any) -> str:
    """Return which form of lengths a value has, so that errors are about this form."""
    return "lengths" if isinstance(value, dict | TokenLengths) else "number"


#: A number is the mean.
PromptTokens = Annotated[
    Annotated[int, Field(ge=1, le=10_000_000), Tag("number")] | Annotated[TokenLengths, Tag("lengths")],
    Discriminator(_form_of_lengths),
]
AnswerTokens = Annotated[
    Annotated[int, Field(ge=0, le=1_000_000), Tag("number")] | Annotated[TokenLengths, Tag("lengths")],
    Discriminator(_form_of_lengths),
]


def mean_tokens(lengths: int | TokenLengths) -> int:
    """Return the mean of lengths in either form."""
    return lengths.mean if isinstance(lengths, TokenLengths) else lengths


def stated_maximum(lengths: int | TokenLengths) -> int | None:
    """Return the longest of lengths in either form; None if the file does not state it."""
    return lengths.max if isinstance(lengths, TokenLengths) else None


class PromptImages(Section):
    """Images in prompts, such as `{mean: 1.5, max: 4}`. Their tokens are a part of `inputTokens`."""

    mean: float = Field(ge=0.0, le=1000.0)
    """Mean number of images of a prompt, at most `max`. Prompts without images count as 0."""
    max: int = Field(ge=1, le=1000)
    """Most images of a prompt, at most `media.imagesPerRequest`. Workers need room for so many, if all that
    sends them prompts states it."""


class Day(Choice):
    """How the rate of requests changes over a day, in UTC. Exactly one key is given."""

    hours: list[Annotated[float, Field(ge=0.0, le=1.0)]] | None = Field(
        default=None, min_length=24, max_length=24
    )
    """24 shares of the peak, each from 0 to 1: the first from 00:00 to 01:00 UTC. 0.5 is half of the peak."""
    rates: str | None = Field(default=None, min_length=1, max_length=1024)
    """Recorded rates of a day or more: a CSV file in the format of ServeGen, by its path from the folder of
    the blueprint, such as `rates/chat.csv`. Each line has the start of a window, in seconds since a midnight
    in UTC, and its requests per second. The highest rate of the file counts as the peak."""
    _means: tuple[float, ...] = PrivateAttr(default=())
    _peaks: tuple[float, ...] = PrivateAttr(default=())

    def with_rates(self, means: tuple[float, ...], peaks: tuple[float, ...]) -> Self:
        """Return a copy that knows what its file says.

        means, peaks: Mean and highest rate of each hour, as shares of the peak.
        """
        copy = self.model_copy()
        copy._means, copy._peaks = means, peaks
        return copy

    @property
    def means(self) -> tuple[float, ...]:
        """Mean rate of each hour, as a share of the peak; empty if the file was not read."""
        return self._means if self.hours is None else tuple(self.hours)

    @property
    def peaks(self) -> tuple[float, ...]:
        """Highest rate of each hour, as a share of the peak; empty if the file was not read."""
        return self._peaks if self.hours is None else tuple(self.hours)


class ModelWorkload(Section):
    """Requests in real time. They determine the KV cache, and the requests of the local replay."""

    # Given values are at least 1: pydantic does not check a default.
    input_tokens: PromptTokens = 0
    """Prompt length in tokens, including those of images: the mean as a number such as `1000`, or
    `{mean: 1000, max: 4000}` with the longest. Required, except with `task: images`."""
    output_tokens: AnswerTokens = 0
    """Answer length in tokens: the mean as a number such as `200`, or `{mean: 200, max: 500}` with the
    longest. Required with `task: generate`."""
    images: ImageRequests | None = None
    """Images that a request asks for. Required with `task: images`, in place of tokens."""
    shared_prefix_ratio: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Fraction of prompt tokens that are a prefix shared with other requests, such as a system prompt: from 0
    to below 1."""
    prompt_images: PromptImages | None = None
    """Number of images in a prompt. Requires `media` of the model."""
    peak_requests_per_second: float = Field(gt=0.0, le=1_000_000.0)
    """Requests per second in the busiest minute."""
    day: Day | None = None
    """How the rate changes over a day, and so what real time leaves to batch on the same workers. Without it,
    the peak lasts all day."""


class RequestLengths(Section):
    """Requests of a queue. Their number follows from `load`."""

    input_tokens: PromptTokens
    """Prompt length in tokens, including those of images: the mean as a number such as `20000`, or
    `{mean: 20000, max: 30000}` with the longest."""
    output_tokens: AnswerTokens
    """Answer length in tokens: the mean as a number such as `100`, or `{mean: 100, max: 200}` with the
    longest."""
    shared_prefix_ratio: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Fraction of prompt tokens that are a prefix shared with other requests, such as a system prompt: from 0
    to below 1."""
    prompt_images: PromptImages | None = None
    """Number of images in a prompt. Requires `media` of the model."""


class StreamedRequests(RequestLengths):
    """Requests of a streaming job. Their number at the peak follows from `load`."""

    day: Day | None = None
    """How the rate changes over a day. Without it, the peak lasts all day."""


class Workload(Section):
    """Requests as the plan sees them, from `workload` of a model, its queues and its streaming jobs."""

    input_tokens: int = Field(default=0, ge=0)
    """Mean prompt length in tokens; 0 with images."""
    output_tokens: int = Field(default=0, ge=0)
    """Mean answer length in tokens; 0 if there is no text."""
    longest_input_tokens: int | None = Field(default=None, exclude=True)
    longest_output_tokens: int | None = Field(default=None, exclude=True)
    """`longest_input_tokens`, `longest_output_tokens`: The longest that the file states: then lengths are
    spread up to it. None if each has the mean length. Replays send requests of the mean length."""
    images: ImageRequests | None = None
    """Images that a request asks for."""
    shared_prefix_ratio: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Fraction of prompt tokens that are a prefix shared with other requests."""
    peak_requests_per_second: float = Field(gt=0.0)
    """Requests per second at the peak."""
    parts: "tuple[Workload, ...]" = Field(default=(), exclude=True)
    """The requests of each way in, if several come together: the other figures are their means."""
