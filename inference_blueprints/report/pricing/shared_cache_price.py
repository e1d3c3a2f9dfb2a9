"""Price of keeping KV cache in S3.

Prices of us-east-1, S3 Standard, first 50 TB (https://aws.amazon.com/s3/pricing/, 2026-07).
"""

from __future__ import annotations

USD_PER_GB_MONTH = 0.023
USD_PER_PUT = 0.005 / 1000
_DAYS_PER_MONTH = 30


def usd_per_million_tokens(
    bytes_per_token: float, *, expire_days: int, tokens_per_object: int, objects_per_chunk: int
) -> float:
    """Return the price of writing a million tokens once and keeping them until they expire, in US dollars.

    Parameters
    ----------
    bytes_per_token
        KV cache of a token on all devices of a worker together, in bytes.
    expire_days
        Days until the tokens expire.
    tokens_per_object
        Tokens per chunk.
    objects_per_chunk
        Objects per chunk: one per device.
    """
    gigabyte_months = 1e6 * bytes_per_token / 1e9 * expire_days / _DAYS_PER_MONTH
    puts = 1e6 / tokens_per_object * objects_per_chunk
    return gigabyte_months * USD_PER_GB_MONTH + puts * USD_PER_PUT
