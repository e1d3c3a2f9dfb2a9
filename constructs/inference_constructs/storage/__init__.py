"""Buckets, tables, and the job that mirrors weights."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.storage.buckets import CacheBucket, DataBucket, LogBucket
    from inference_constructs.storage.tables import BatchJobTable, BatchProgressTable
    from inference_constructs.storage.weights_mirror_job import WeightsMirrorJob
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "BatchJobTable",
    "BatchProgressTable",
    "CacheBucket",
    "DataBucket",
    "LogBucket",
    "WeightsMirrorJob",
]
