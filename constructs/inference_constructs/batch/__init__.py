"""Batch: runs jobs from submission to results."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.batch.batch_jobs import BatchJobs, JobSchedule, JobsDoor
    from inference_constructs.batch.batch_metrics import BatchMetrics
    from inference_constructs.batch.batch_monitoring import BatchMonitoring
    from inference_constructs.batch.batch_rest_api import BatchRestApi
    from inference_constructs.batch.batch_shard_queue import BatchShardQueue
    from inference_constructs.batch.batch_store import BatchStore
    from inference_constructs.batch.model_worker import ModelWorker, WorkerCount
    from inference_constructs.batch.team_isolation import TeamInputs, isolate_teams
    from inference_constructs.batch.worker_deployment import WorkerDeployment
    from inference_constructs.batch.worker_image import WorkerImage
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "BatchJobs",
    "BatchMetrics",
    "BatchMonitoring",
    "BatchRestApi",
    "BatchShardQueue",
    "BatchStore",
    "JobSchedule",
    "JobsDoor",
    "ModelWorker",
    "TeamInputs",
    "WorkerCount",
    "WorkerDeployment",
    "WorkerImage",
    "isolate_teams",
]
