"""What models have really read and written, by the counters of their own frontends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.request import urlopen

from inference_contracts.door_configuration import NANO, DoorConfiguration, DoorPrices
from inference_local.serving.local_serving import LocalServing

#: Counters of a frontend of Dynamo (``lib/llm/src/http/service/metrics.rs`` of ai-dynamo 1.6.1): tokens of
#: prompts, and of answers. Both count streams that were cut, too.
_INPUT = "dynamo_frontend_input_sequence_tokens_sum{"
_OUTPUT = "dynamo_frontend_output_tokens_total{"
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class CountedTokens:
    """Tokens of prompts and answers."""

    input: int = 0
    output: int = 0

    def __add__(self, other: CountedTokens) -> CountedTokens:
        return CountedTokens(self.input + other.input, self.output + other.output)

    def __sub__(self, other: CountedTokens) -> CountedTokens:
        return CountedTokens(self.input - other.input, self.output - other.output)

    def usd(self, prices: DoorPrices) -> float:
        """Return their cost, in US dollars."""
        return (self.input * prices.input_token + self.output * prices.output_token) / NANO


def tokens_of(page: str) -> CountedTokens:
    """Return the tokens of all models on a page of metrics.

    page: Prometheus's text format.
    """
    return CountedTokens(_sum(page, _INPUT), _sum(page, _OUTPUT))


def counted(serving: LocalServing) -> dict[str, CountedTokens]:
    """Return what the frontends of each deployment have counted so far, by its release.

    Empty if a deployment has other frontends than Dynamo's.
    """
    if any(each.frontend.stack != "dynamo" for each in serving.deployments):
        return {}
    return {
        each.plan.release: sum(
            (tokens_of(_page(url)) for url in serving.frontend_urls(each)), start=CountedTokens()
        )
        for each in serving.deployments
    }


def cost(
    before: Mapping[str, CountedTokens],
    after: Mapping[str, CountedTokens],
    configuration: DoorConfiguration,
) -> float:
    """Return what was counted between two moments, in US dollars.

    configuration: Prices of the models, by their targets.
    """
    prices = {target.cluster: model.prices for model in configuration.models for target in model.targets}
    return sum(
        (after[release] - before[release]).usd(prices[release]) for release in after if release in prices
    )


def _sum(page: str, counter: str) -> int:
    lines: Iterable[str] = (line for line in page.splitlines() if line.startswith(counter))
    return sum(round(float(line.rpartition(" ")[2])) for line in lines)


def _page(url: str) -> str:
    with urlopen(f"{url}/metrics", timeout=_SECONDS) as answer:  # noqa: S310 - an address of this machine
        return str(answer.read(), "utf-8")
