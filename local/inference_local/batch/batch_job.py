"""Submits a batch job with OpenAI's client and waits for its end."""

from __future__ import annotations

import json
import secrets
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import boto3
import openai
from openai.types import Batch

from inference_blueprints.measure.completions.image_client import image_body
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.operate.batch.batch_api_client import batch_token
from inference_blueprints.spec.types import BatchQueue, Team, Workload
from inference_contracts.batch_names import API_OUTPUT, FINAL
from inference_contracts.errors import UserError
from inference_contracts.image_files import PNG
from inference_local.batch.batch_outcome import BatchOutcome, count, named_images
from inference_local.emulator.emulator import Emulator
from inference_local.run_state import RunningBatch
from inference_local.signal_store import Read, read_back

# Finds the emulated batch API and creates tokens for it.

_SESSION = "local"


def find_batch(emulator: Emulator, platform: str, teams: Sequence[Team]) -> RunningBatch:
    """Return the address of the deployed batch API, and who submits jobs.

    emulator: The emulator that the platform is deployed to.
    teams: Teams that may submit jobs. The first team with a role submits them.
    Raises UserError if no team has a role. The emulator issues credentials only for roles.
    """
    submitter = _submitter(teams)
    if submitter is None:
        raise UserError(
            "spec.teams: no team has an IAM role in 'principals', and the emulator supports only roles; "
            "add one, such as arn:aws:iam::123456789012:role/Ads"
        )
    team, role = submitter
    (stack,) = emulator.client("cloudformation").describe_stacks(StackName=f"{platform}-Batch")["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    address = urlsplit(outputs[API_OUTPUT])
    api = (address.hostname or "").partition(".")[0]
    stage, version = address.path.strip("/").split("/")
    return RunningBatch(
        base_url=f"{emulator.endpoint_url}/restapis/{api}/{stage}/_user_request_/{version}",
        platform=platform,
        team=team,
        role=role,
        environment=emulator.environment(),
    )


def local_token(batch: RunningBatch) -> str:
    """Return a token of the team. It is valid for fifteen minutes.

    batch: The batch API.
    """
    account = _session(
        batch, batch.environment["AWS_ACCESS_KEY_ID"], batch.environment["AWS_SECRET_ACCESS_KEY"]
    )
    client = account.client("sts", endpoint_url=batch.environment["AWS_ENDPOINT_URL"])
    credentials = client.assume_role(RoleArn=batch.role, RoleSessionName=_SESSION)["Credentials"]
    team = _session(
        batch, credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"]
    )
    number = client.get_caller_identity()["Account"]
    return batch_token(team, platform=batch.platform, region=batch.environment["AWS_REGION"], account=number)


def _session(batch: RunningBatch, *credentials: Any) -> boto3.Session:
    return boto3.Session(*credentials, region_name=batch.environment["AWS_REGION"])


def _submitter(teams: Sequence[Team]) -> tuple[str, str] | None:
    """Return the first team that has a role, and the role."""
    return next(
        ((team.name, arn) for team in teams for arn in team.principals if ":role/" in arn),
        None,
    )


# How to use the batch API of a run that keeps running.


def usage_lines(batch: RunningBatch, run_directory: Path, program: str) -> tuple[str, ...]:
    """Return the address, how to get a token, and a command for a POSIX shell that lists jobs.

    batch: The running batch API.
    program: How this shell calls the command `blueprints`.
    """
    token = f"$({program} local token --run-directory {shlex.quote(str(run_directory))})"
    return (
        f"batch: {batch.base_url} for clients of the OpenAI API, as team {batch.team}",
        f'export OPENAI_BASE_URL={shlex.quote(batch.base_url)} OPENAI_API_KEY="{token}"',
        'curl -s "$OPENAI_BASE_URL/batches" -H "Authorization: Bearer $OPENAI_API_KEY"',
    )


#: Requests per job.
REQUESTS = 400
# Short requests, so that the job takes half a minute.
_LONGEST_PROMPT, _LONGEST_ANSWER = 500, 50
# Small images, for the same reason.
_IMAGE_PROMPT, _IMAGE_SIZE = 32, "64x64"
_Path = Literal["/v1/chat/completions", "/v1/images/generations"]
_LOOK_SECONDS = 0.5
_LONGEST_SECONDS = 600.0
_SEED_BITS = 31


class BatchJob:
    """Submits a job and waits for its end.

    workload: Lengths of its prompts and answers, in tokens. They are cut to at most 500 and 50.
    context_length: Maximum length of prompt and answer together, in tokens.
    signal: Signal that its answers are written to. None if the team has none.
    """

    def __init__(
        self,
        batch: RunningBatch,
        queue: BatchQueue,
        workload: Workload,
        context_length: int,
        signal: str | None = None,
        *,
        requests: int = REQUESTS,
    ) -> None:
        self._batch = batch
        self._queue = queue
        self._signal = signal
        self._images = workload.images
        self._path: _Path = "/v1/images/generations" if workload.images else "/v1/chat/completions"
        # A workload of images states no length of prompts.
        length = _IMAGE_PROMPT if workload.images else workload.input_tokens
        self._prompt = min(length, _LONGEST_PROMPT, context_length // 2)
        self._answer = min(workload.output_tokens, _LONGEST_ANSWER, context_length // 4)
        self._ids = [f"line-{number}" for number in range(requests)]
        self._client = openai.OpenAI(base_url=batch.base_url, api_key=lambda: local_token(batch))

    def run(
        self,
        has_begun: Callable[[str], bool],
        disturb: Callable[[], int],
        check: Callable[[], None],
        read_signals: Read,
    ) -> BatchOutcome:
        """Submit the job, kill workers once it has results, wait for its end, and count its requests.

        has_begun: Returns whether the job with this identifier has results.
        disturb: Kills and replaces workers, and returns their number.
        check: Called while the job runs. It raises an error if a process has died.
        read_signals: Reads the signal store, if there is one.
        Raises UserError if the API refuses the job, or the job takes too long.
        """
        began = time.monotonic()
        killed = 0
        try:
            batch = self._submit()
            while batch.status not in FINAL:
                check()
                if time.monotonic() - began > _LONGEST_SECONDS:
                    raise UserError(
                        f"batch job {batch.id} is still {batch.status} after {_LONGEST_SECONDS:.0f} s"
                    )
                if not killed and has_begun(batch.id):
                    killed = disturb()
                time.sleep(_LOOK_SECONDS)
                batch = self._client.batches.retrieve(batch.id)
            seconds = time.monotonic() - began
            output = self._content(batch.output_file_id)
            counts = count(self._ids, output, self._content(batch.error_file_id))
        except openai.APIError as error:
            raise UserError(f"the batch API at {self._batch.base_url}: {error}") from error
        return BatchOutcome(
            queue=self._queue.name,
            model=self._queue.model,
            team=self._batch.team,
            state=batch.status,
            **asdict(counts),
            cost_usd=batch.to_dict()["cost_usd"],  # type: ignore[arg-type]  # this platform's own field
            seconds=seconds,
            workers_killed=killed,
            signals=read_back(self._signal, self._queue.model, output, read_signals)
            if self._signal
            else None,
            images=self._read_images(output) if self._images else None,
        )

    def _read_images(self, output: str) -> int:
        """Return the number of images that the output names. The first and the last are read.

        Raises UserError if one of these cannot be read, or is no PNG file.
        """
        named = named_images(output)
        for image in {*named[:1], *named[-1:]}:
            try:
                content = self._client.files.content(image).read()
            except openai.APIError as error:
                raise UserError(f"image {image} of the batch job: {error}") from error
            if not content.startswith(PNG):
                raise UserError(f"image {image} of the batch job is not a PNG file")
        return len(set(named))

    def _submit(self) -> Batch:
        file = self._client.files.create(file=("requests.jsonl", self._lines()), purpose="batch")
        return self._client.batches.create(
            input_file_id=file.id,
            endpoint=self._path,
            completion_window="24h",
            metadata={"queue": self._queue.name} | ({"signal": self._signal} if self._signal else {}),
        )

    def _lines(self) -> bytes:
        """Return the requests. No two runs share a prompt, so that none hits the prefix cache of another."""
        seed = secrets.randbits(_SEED_BITS)
        lines = [
            {
                "custom_id": identifier,
                "method": "POST",
                "url": self._path,
                "body": self._body(random_text(self._prompt, seed + number)),
            }
            for number, identifier in enumerate(self._ids)
        ]
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()

    def _body(self, prompt: str) -> dict[str, Any]:
        if self._images:
            return {**image_body(self._queue.model, prompt, self._images), "size": _IMAGE_SIZE}
        return {
            "model": self._queue.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self._answer,
        }

    def _content(self, file: str | None) -> str:
        return self._client.files.content(file).text if file else ""
