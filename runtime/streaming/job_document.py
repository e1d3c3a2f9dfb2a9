"""The configuration of the job that a function belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

import boto3

from inference_contracts.streaming_job import JobSignalStore, StreamingJobConfiguration
from inference_contracts.streaming_names import JOB_DOCUMENT
from signals.connection import Address


@cache
def job_configuration() -> StreamingJobConfiguration:
    """Return the configuration, which the environment variable ``STREAMING_CONFIGURATION`` addresses."""
    bucket, _, key = os.environ[JOB_DOCUMENT].removeprefix("s3://").partition("/")
    body = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return StreamingJobConfiguration.from_json(body.decode("utf-8"))


def store_address(store: JobSignalStore, environment: Mapping[str, str] = os.environ) -> Address:
    """Return the address of the signal store, with the user of this function (``SIGNALS_USER``).

    store: The store in the job's configuration.
    """
    iam = store.authentication == "iam"
    return Address(
        host=store.host,
        port=store.port,
        cache=store.cache_name if iam else None,
        user=environment.get("SIGNALS_USER", store.user) if iam else None,
        region=store.region if iam else None,
    )
