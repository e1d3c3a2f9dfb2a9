"""Commands about batch as they are run, and jobs that have ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from batch.contracts.shard import Usage
from batch.jobs.file_table import FileRecord
from batch.jobs.job_table import Job, JobError, RequestCounts, plain
from batch.jobs.settings import BatchPlatform
from batch.jobs.spending import Figures, additions
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import JobState
from tests.runtime.batch import resources
from tests.unit.command_run import Ran

SEARCH = ("AKIAIOSFODNN7EXAMPLE", "secret-of-search")
NOBODY = ("AKIAIOSFODNN7NOBODYX", "secret-of-nobody")
QUEUES = """\
  teams:
  - {name: search, principals: ["arn:aws:iam::123456789012:role/Search"], monthlyBudgetUsd: 1000}
  batch:
    queues:
    - name: nightly
      model: qwen3-8b
      rates: {usdPerMillionInputTokens: 0.05, usdPerMillionOutputTokens: 0.4}
"""
BATCH = f"""\
{QUEUES}\
  signalStore:
    valkey: {{maxGb: 1}}
    signals:
    - {{name: product-captions, team: search}}
"""
BLUEPRINT = """\
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {name: chat}
spec:
  environment: {region: us-west-2}
  cluster: {eks: {version: "1.35"}}
  pools:
  - {name: l40s, instanceTypes: [g6e.2xlarge], nodes: {max: 8}}
  models:
  - name: qwen3-8b
    weights: {huggingFace: Qwen/Qwen3-8B}
    engine: {vllm: {}}
    workload: {inputTokens: 2000, outputTokens: 100, peakRequestsPerSecond: 6}
    deployments:
    - {name: main, aggregated: {pool: l40s, replicas: 1, tensorParallelSize: 1}}
"""
LINE = {
    "custom_id": "a",
    "method": "POST",
    "url": "/v1/completions",
    "body": {"model": "qwen3-8b", "prompt": "hi"},
}
REQUEST = json.dumps(LINE).encode() + b"\n"
ABSENT = "batch_" + "0" * 32


Run = Callable[..., Ran]


def submitted(run: Run, *words: str) -> str:
    ran = run("batch", "submit", "chat.yaml", "in.jsonl", *words)
    assert (ran.code, ran.err) == (0, "")
    return ran.out.strip()


def end(platform: BatchPlatform, job_id: str, state: JobState, *errors: JobError) -> Job:
    """End a job with nine answers and a line that failed."""
    changes: dict[str, object] = {
        "counts": plain(RequestCounts(10, 9, 1)),
        "usage": plain(Usage(input_tokens=2_000_000, output_tokens=500_000)),
        "cost_usd": 0.3,
        "errors": [plain(each) for each in errors],
    }
    for name, key in (("output", JobKeys(job_id).output), ("error", JobKeys(job_id).error)):
        content = f'{{"custom_id": "{name}"}}\n'.encode()
        platform.storage.put(key, content)
        file_id = f"file-{name:0<32}".replace("output", "abcdef").replace("error", "fedcb")
        platform.files.put(
            FileRecord(file_id, "search", name, "batch_output", len(content), resources.BUCKET, key, 1)
        )
        changes[f"{name}_file_id"] = file_id
    platform.jobs.move(job_id, "in_progress", before=["validating"], now=1)
    job = platform.jobs.move(job_id, "finalizing", before=["in_progress"], now=1)
    figures = Figures(1, 9, 1, 2_000_000, 0, 500_000, 0.3)
    return platform.jobs.move(
        job_id,
        state,
        before=["finalizing"],
        now=1,
        changes=changes,
        additions=additions(job, figures, now=time.time()),
    )
