"""Environment variables of the functions that create or show jobs.

=========================== ==============================================================================
Variable                    Meaning
=========================== ==============================================================================
``BATCH_TABLE``             name of the DynamoDB table (`batch.jobs.record_table`)
``BATCH_PROGRESS_TABLE``    DynamoDB table of the progress of jobs (`batch.contracts.progress_items`)
``BATCH_BUCKET``            bucket of files and jobs (`inference_contracts.batch_keys`)
``BATCH_STATE_MACHINE_ARN`` ARN of the state machine that runs a job
``BATCH_CONFIGURATION``     file of queues and teams (`inference_contracts.batch_configuration`), a path from
                            the folder that holds this package; a function's variables have 4 KB together
=========================== ==============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from batch.jobs.executions import Executions
from batch.jobs.file_table import FileTable, UploadTable
from batch.jobs.job_progress import ProgressTable
from batch.jobs.job_table import JobTable
from batch.jobs.record_table import Table
from batch.jobs.storage import Storage
from batch.variables import require
from inference_contracts import batch_names
from inference_contracts.batch_configuration import Configuration

_RETRIES = Config(retries={"mode": "standard", "max_attempts": 5})
# Some regions accept presigned addresses only with signature version 4 and a regional host name.
_PRESIGNED = _RETRIES.merge(Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
_CODE = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class RecordTables:
    table: Table
    jobs: JobTable
    files: FileTable


@dataclass(frozen=True, slots=True)
class BatchPlatform:
    """Clients and tables of the functions."""

    configuration: Configuration
    table: Table
    jobs: JobTable
    files: FileTable
    uploads: UploadTable
    progress: ProgressTable
    """Progress of jobs."""
    storage: Storage
    executions: Executions


def read_configuration(environment: Mapping[str, str]) -> Configuration:
    """Read queues and teams.

    Raises BatchSettingsError if the variable is missing. Raises OSError if the file cannot be read. Raises
    ConfigurationError if the document is invalid.
    """
    require(environment, batch_names.CONFIGURATION)
    return Configuration.from_json((_CODE / environment[batch_names.CONFIGURATION]).read_bytes())


def read_records(environment: Mapping[str, str]) -> RecordTables:
    """Return the tables of records, for functions that do not start or stop jobs.

    Raises BatchSettingsError if the variable is missing.
    """
    require(environment, batch_names.TABLE)
    resource: Any = boto3.resource("dynamodb", config=_RETRIES)
    table = Table(resource.Table(environment[batch_names.TABLE]))
    return RecordTables(table, JobTable(table), FileTable(table))


def read_progress(environment: Mapping[str, str]) -> ProgressTable:
    require(environment, batch_names.PROGRESS_TABLE)
    client = boto3.client("dynamodb", config=_RETRIES)
    return ProgressTable(client, environment[batch_names.PROGRESS_TABLE])


def read_platform(environment: Mapping[str, str]) -> BatchPlatform:
    """Return all clients and tables of the functions for the API and for submission.

    Raises BatchSettingsError if variables are missing. Raises ConfigurationError if the configuration is
    invalid.
    """
    require(
        environment,
        batch_names.TABLE,
        batch_names.BUCKET,
        batch_names.STATE_MACHINE_ARN,
        batch_names.CONFIGURATION,
    )
    records = read_records(environment)
    return BatchPlatform(
        configuration=read_configuration(environment),
        table=records.table,
        jobs=records.jobs,
        files=records.files,
        uploads=UploadTable(records.table),
        progress=read_progress(environment),
        storage=Storage(boto3.client("s3", config=_PRESIGNED), environment[batch_names.BUCKET]),
        executions=Executions(
            boto3.client("stepfunctions", config=_RETRIES), environment[batch_names.STATE_MACHINE_ARN]
        ),
    )
