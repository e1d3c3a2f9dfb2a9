"""Jobs in the table and in the bucket, as submitting, checking and planning leave them."""

from __future__ import annotations

import json
from typing import Any

from batch.contracts.request import Input, JobRequest
from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform
from batch.objects import Objects
from batch.preparation.planning import Plan
from inference_contracts.batch_configuration import Capacity
from inference_contracts.batch_keys import JobKeys, new_job
from tests.runtime.batch import resources

NOW = 1_800_000_000
HOUR = 3600
CAPACITY = Capacity(40_000, 8_000, 0.05, 0.4, places=4)


def make_job(platform: BatchPlatform, **changes: Any) -> Job:
    """A job that was submitted, checked and planned: three shards of ten lines, an hour of work."""
    values: dict[str, Any] = {
        "id": new_job("qwen3-8b"),
        "team": "search",
        "queue": "nightly",
        "model": "qwen3-8b",
        "endpoint": "/v1/chat/completions",
        "inputs": (Input("inputs", "in.jsonl"),),
        "source": "api",
        "principal": resources.SEARCH,
        "created_at": NOW,
        "expires_at": NOW + 24 * HOUR,
        "completion_window": "24h",
        "priority": 10,
        "budget_usd": 100.0,
        **changes,
    }
    job = platform.jobs.create(Job(**values), None)
    objects = Objects(resources.BUCKET)
    keys = JobKeys(job.id)
    request = JobRequest(
        job=job.id,
        team=job.team,
        queue=job.queue,
        model=job.model,
        endpoint=job.endpoint,
        inputs=job.inputs,
        deadline=float(job.expires_at),
        budget_usd=job.budget_usd,
        capacity=CAPACITY,
    )
    plan = Plan(
        lines=30,
        invalid=0,
        repeated=0,
        requests=30,
        shards=3,
        input_tokens=3_000_000,
        output_tokens=600_000,
        hours=1.0,
        usd=50.0,
    )
    shards = [{"shard": f"s{number}", "lines": 10} for number in range(3)]
    objects.write(keys.request, request.to_json().encode())
    objects.write(keys.plan, plan.to_json().encode())
    objects.write(keys.shards, b"".join(json.dumps(each).encode() + b"\n" for each in shards))
    objects.write(keys.invalid, b"")
    return job
