"""Batch: who may submit jobs, and where they wait."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import (
    Name,
    PrincipalArn,
    S3Folder,
    Section,
)


class Team(Section):
    """Those who submit jobs under one name and pay for them together."""

    name: Name
    """Name of the team; part of keys in S3, and a dimension of its metrics."""
    principals: list[PrincipalArn] = Field(min_length=1, max_length=50)
    """ARNs of the IAM roles and users that are the team."""
    monthly_budget_usd: float = Field(gt=0.0, le=1_000_000_000.0)
    """What its jobs may cost in a calendar month, in dollars; stops admission, never a job that runs."""
    data_prefixes: list[S3Folder] = Field(default_factory=list, max_length=20)
    """Prefixes in S3 below which its inputs and images are read, such as `s3://bucket/folder/`."""


class Rates(Section):
    """What teams are charged; `blueprints plan` shows what the platform itself pays."""

    usd_per_million_input_tokens: float = Field(ge=0.0, le=1000.0)
    """Dollars for a million tokens of prompts."""
    usd_per_million_output_tokens: float = Field(ge=0.0, le=1000.0)
    """Dollars for a million tokens of answers."""


class BatchQueue(Section):
    """Where jobs for one model wait."""

    name: Name
    """Name of the queue."""
    model: Name
    """Model that answers its jobs."""
    priority: int = Field(default=10, ge=0, le=100)
    """Of jobs that ask for none; higher goes first, and an hour of waiting weighs as much as one step."""
    deadline_hours: float = Field(default=24.0, gt=0.0, le=336.0)
    """Hours after which a job must be finished, at most."""
    rates: Rates
    """What its jobs cost."""


class Batch(Section):
    """Jobs of many requests, which run on whatever capacity is free."""

    # Each model that has one gets workers of its own; a queue beside it costs nothing.
    queues: list[BatchQueue] = Field(min_length=1, max_length=50)
    """Where jobs wait."""
