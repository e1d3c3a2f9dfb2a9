"""The contract of all functions that make or show jobs: environment variables.

=========================== ==============================================================================
Variable                    Meaning
=========================== ==============================================================================
``BATCH_TABLE``             name of the DynamoDB table (`batch.jobs.table`)
``BATCH_PROGRESS_TABLE``    name of the DynamoDB table of how far jobs are (`batch.contracts.progress`)
``BATCH_BUCKET``            bucket of files and jobs (`batch.contracts.keys`)
``BATCH_STATE_MACHINE_ARN`` ARN of the state machine that runs a job
``BATCH_CONFIGURATION``     file of queues and teams (`batch.jobs.configuration`), a path from the folder
                            that holds this package; a function's variables have 4 KB together
=========================== ==============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from batch.jobs.configuration import Configuration
from batch.jobs.executions import Executions
from batch.jobs.file_table import FileTable, UploadTable
from batch.jobs.job_table import JobTable
from batch.jobs.progress import ProgressTable
from batch.jobs.storage import Storage
from batch.jobs.table import Table

_RETRIES = Config(retries={"mode": "standard", "max_attempts": 5})
# Presigned addresses are only accepted everywhere when they name the region and are signed in version 4.
_PRESIGNED = _RETRIES.merge(Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
_CODE = Path(__file__).parents[2]


class SettingsError(Exception):
    """Variables that are missing, all of them in one message."""


@dataclass(frozen=True, slots=True)
class Records:
    """The records of jobs and files.

    Parameters
    ----------
    table
        Where they are.
    jobs, files
        What they are read and written by.
    """

    table: Table
    jobs: JobTable
    files: FileTable


@dataclass(frozen=True, slots=True)
class Platform:
    """What the functions work with.

    Parameters
    ----------
    configuration
        Queues and teams.
    table
        All records.
    jobs, files, uploads
        Some of them.
    progress
        How far jobs are.
    storage
        The bucket.
    executions
        The state machine.
    """

    configuration: Configuration
    table: Table
    jobs: JobTable
    files: FileTable
    uploads: UploadTable
    progress: ProgressTable
    storage: Storage
    executions: Executions


def read_configuration(environment: Mapping[str, str]) -> Configuration:
    """Read queues and teams.

    Parameters
    ----------
    environment
        The process's environment.

    Raises
    ------
    SettingsError
        If the variable is missing.
    OSError
        If the file cannot be read.
    ConfigurationError
        If it is wrong.
    """
    _require(environment, "BATCH_CONFIGURATION")
    return Configuration.from_json((_CODE / environment["BATCH_CONFIGURATION"]).read_bytes())


def read_records(environment: Mapping[str, str]) -> Records:
    """Read where the records are; for functions that start and stop nothing.

    Parameters
    ----------
    environment
        The process's environment.

    Raises
    ------
    SettingsError
        If the variable is missing.
    """
    _require(environment, "BATCH_TABLE")
    resource: Any = boto3.resource("dynamodb", config=_RETRIES)
    table = Table(resource.Table(environment["BATCH_TABLE"]))
    return Records(table, JobTable(table), FileTable(table))


def read_progress(environment: Mapping[str, str]) -> ProgressTable:
    """Read where it is written how far jobs are.

    Parameters
    ----------
    environment
        The process's environment.

    Raises
    ------
    SettingsError
        If the variable is missing.
    """
    _require(environment, "BATCH_PROGRESS_TABLE")
    client = boto3.client("dynamodb", config=_RETRIES)
    return ProgressTable(client, environment["BATCH_PROGRESS_TABLE"])


def read_platform(environment: Mapping[str, str]) -> Platform:
    """Read what the functions work with.

    Parameters
    ----------
    environment
        The process's environment.

    Raises
    ------
    SettingsError
        If variables are missing.
    ConfigurationError
        If queues and teams are wrong.
    """
    _require(environment, "BATCH_TABLE", "BATCH_BUCKET", "BATCH_STATE_MACHINE_ARN", "BATCH_CONFIGURATION")
    records = read_records(environment)
    return Platform(
        configuration=read_configuration(environment),
        table=records.table,
        jobs=records.jobs,
        files=records.files,
        uploads=UploadTable(records.table),
        progress=read_progress(environment),
        storage=Storage(boto3.client("s3", config=_PRESIGNED), environment["BATCH_BUCKET"]),
        executions=Executions(
            boto3.client("stepfunctions", config=_RETRIES), environment["BATCH_STATE_MACHINE_ARN"]
        ),
    )


def _require(environment: Mapping[str, str], *names: str) -> None:
    """Refuse an environment in which any of these variables is missing or empty."""
    missing = [name for name in names if not environment.get(name)]
    if missing:
        raise SettingsError(f"environment variables are missing: {', '.join(missing)}")
