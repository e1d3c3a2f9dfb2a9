"""The share of a histogram above a limit, as PromQL."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

#: Upper bounds of the buckets, in seconds, as the programs report them. Prometheus 3 writes whole numbers
#: with a point. Read in Dynamo 1.6.1; vLLM: vllm/v1/metrics/loggers.py at v0.24.0.
BUCKETS: Mapping[str, tuple[float, ...]] = {
    "dynamo_frontend_time_to_first_token_seconds": (
        *(0.0, 0.0022, 0.0047, 0.01, 0.022, 0.047, 0.1, 0.22, 0.47),
        *(1.0, 2.2, 4.7, 10.0, 22.0, 48.0, 100.0, 220.0, 480.0),
    ),
    "dynamo_frontend_inter_token_latency_seconds": (
        *(0.0, 0.0018, 0.0033, 0.0059, 0.011, 0.02, 0.035, 0.064, 0.12, 0.21, 0.38, 0.69),
        *(1.2, 2.3, 4.1, 7.4, 13.0, 24.0, 44.0, 80.0),
    ),
    "vllm:time_to_first_token_seconds": (
        *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
        *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
    ),
    "vllm:inter_token_latency_seconds": (
        *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
        *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
    ),
}

#: Of a share: far below every threshold of an alarm.
_PRECISION = "0.000001"


def late_share(metric: str, selector: str, by: str, window: str, *, limit_seconds: float) -> str:
    """Return PromQL for the share of a histogram's observations above a limit.

    Within a bucket, observations are taken as evenly spread, as `histogram_quantile` does.

    Parameters
    ----------
    metric
        Name of the histogram without its ending, one of `BUCKETS`.
    selector
        Label matchers.
    by
        Labels of the result.
    window
        Range of the rate, such as ``5m``.
    limit_seconds
        The limit.
    """
    bounds = BUCKETS[metric]
    place = bisect_right(bounds, limit_seconds)
    total = f"sum by ({by}) (rate({metric}_count{{{selector}}}[{window}]))"

    def below(bound: float) -> str:
        return f'sum by ({by}) (rate({metric}_bucket{{{selector},le="{_le(bound)}"}}[{window}]))'

    if place == len(bounds):  # beyond the last bucket nothing is known: what is in no bucket is late
        inside = below(bounds[-1])
    elif place == 0:
        inside = f"{limit_seconds / bounds[0]:.6g} * {below(bounds[0])}"
    else:
        lower, upper = bounds[place - 1], bounds[place]
        share = (limit_seconds - lower) / (upper - lower)
        inside = below(lower)
        if share:
            inside = f"({1 - share:.6g} * {inside} + {share:.6g} * {below(upper)})"
    # Without rounding, shares of nothing would be rounding errors, some of them negative.
    return f"round(1 - {inside} / ({total} > 0), {_PRECISION})"


def _le(bound: float) -> str:
    """Return a bucket's label as Prometheus 3 writes it."""
    return repr(bound)
