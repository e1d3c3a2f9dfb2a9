"""Buckets, tables, and the job that mirrors weights."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.storage.batch_job_table import BatchJobTable
    from inference_constructs.storage.batch_progress_table import BatchProgressTable
    from inference_constructs.storage.cache_bucket import CacheBucket
    from inference_constructs.storage.data_bucket import DataBucket
    from inference_constructs.storage.log_bucket import LogBucket
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
