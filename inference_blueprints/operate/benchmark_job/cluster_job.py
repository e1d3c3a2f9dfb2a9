"""Sends a load test from within the cluster: creates a Job, waits for it, reads its log and deletes it."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from inference_blueprints.measure.benchmarking.load_generators import Access, LoadTest
from inference_blueprints.operate.benchmark_job import job_objects
from inference_blueprints.operate.benchmark_job.job_objects import JobSettings, KubernetesObject
from inference_blueprints.operate.kubernetes import KubectlFailed, forward_port
from inference_blueprints.operate.verify.verified_platform import (
    ClusterReader,
    condition,
    forwarded_port,
    holds,
    unready_reason,
)
from inference_blueprints.serving.types import DeploymentPlan
from inference_catalog.charts import charts
from inference_contracts.errors import UserError

_POLL_SECONDS = 2.0
_PROGRESS_SECONDS = 15.0
#: A token lasts for 15 minutes
#: (https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html).
_TOKEN_SECONDS = 600.0
_NAME_CHARACTERS = 40
#: What a public name of a model may have, such as `Qwen/Qwen3-8B`, and a name of an object may not.
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_NO_IMAGE = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName")
_ERROR_LINES = 3


class JobCluster(ClusterReader, Protocol):
    """The kubectl operations that a benchmark Job needs."""

    def apply(self, objects: Sequence[KubernetesObject]) -> None:
        """Create objects."""


def job_settings(load_test: LoadTest, namespace: str, image: str, access: Access) -> JobSettings:
    """Return the settings of a Job for a load test. Each call generates a new name.

    image: Container image with Python and aiperf.
    access: API key and certificates for the endpoint.
    """
    model = _NOT_IN_NAMES.sub("-", load_test.model.lower())[:_NAME_CHARACTERS].strip("-")
    return JobSettings(
        name=f"benchmark-{model}-{secrets.token_hex(4)}",
        namespace=namespace,
        image=image,
        seconds=load_test.seconds,
        with_key=access.api_key is not None,
        with_authority=access.authority is not None,
    )


def objects(load_test: LoadTest, namespace: str, image: str, access: Access) -> list[KubernetesObject]:
    """Return all Kubernetes objects of a load test, without the API key and without owner references.

    Raises UserError if the requests do not fit a ConfigMap.
    """
    settings = job_settings(load_test, namespace, image, access)
    authority = access.authority.read_bytes() if access.authority else None
    key = "" if access.api_key else None
    others = job_objects.supporting_objects(settings, None, packed_questions(load_test), authority, key)
    return [job_objects.job(settings), *others]


def models_namespace(deployment: DeploymentPlan) -> str:
    """Return the namespace of a deployment's pods."""
    return charts()[deployment.chart].namespace


def packed_questions(load_test: LoadTest) -> bytes:
    """Return a load test as a compressed document for a ConfigMap.

    Raises UserError if it is too large for a ConfigMap.
    """
    questions = load_test.packed(job_objects.TOKENIZER)
    if len(questions) > job_objects.QUESTIONS_BYTES:
        raise UserError(
            f"{len(load_test.questions):,} requests take {len(questions) / 1024**2:.1f} MiB, compressed, "
            "but a ConfigMap holds 1 MiB: send fewer with --requests or --seconds, or leave out --job "
            "and run this command on a machine that can reach the endpoint, such as one in the VPC"
        )
    return questions


@dataclass(slots=True)
class ClusterLoadGenerator:
    """Sends requests from a Job in the namespace of the models."""

    connect: Callable[[], JobCluster]
    """Connects to the cluster; called again before its token expires."""
    deployment: DeploymentPlan
    """A deployment of the model, to which this machine sends the first requests."""
    access: Access
    """API key and certificates for the endpoint."""
    image: str
    """Container image with Python and aiperf."""
    say: Callable[[str], None]
    """Shows a line of progress."""
    poll_seconds: float = _POLL_SECONDS
    """Time between two status requests."""
    _cluster: JobCluster | None = field(default=None, init=False)
    _connected: float = field(default=0.0, init=False)

    @contextmanager
    def open_address(self, base_url: str) -> Iterator[str]:  # noqa: ARG002 - that is for the Job
        """Forward a local port to a ready frontend of the model.

        base_url: Endpoint of the Job; not used here.
        Raises UserError if no frontend is ready or reachable.
        """
        entry, release = self.deployment.entry_point, self.deployment.release
        namespace = models_namespace(self.deployment)
        labels = f"app.kubernetes.io/instance={release},app.kubernetes.io/component={entry.name}"
        try:
            pods = self._kubectl().get("pods", "--namespace", namespace, "--selector", labels)
            ready = [pod["metadata"]["name"] for pod in pods if holds(pod, "Ready")]
            if not ready:
                raise UserError(
                    f"{release}: no {entry.name} is ready; `blueprints verify` reports the reason"
                )
            with forward_port(self._kubectl(), namespace, ready[0], forwarded_port(entry)) as address:
                yield address
        except KubectlFailed as failure:
            raise _refused(failure) from failure

    def ask(self, load_test: LoadTest) -> str:
        """Run the Job to its end and return its log. The Job is deleted in any case.

        Raises UserError if the requests do not fit a ConfigMap, the cluster refuses, or the Job fails or
        times out.
        """
        settings = job_settings(load_test, models_namespace(self.deployment), self.image, self.access)
        questions = packed_questions(load_test)
        authority = self.access.authority.read_bytes() if self.access.authority else None
        try:
            self._kubectl().apply([job_objects.job(settings)])
            try:
                uid = self._job(settings)["metadata"]["uid"]
                key = self.access.api_key
                self._kubectl().apply(
                    job_objects.supporting_objects(settings, uid, questions, authority, key)
                )
                self._wait(settings)
                return self._log(settings)
            finally:
                self._delete(settings)
        except KubectlFailed as failure:
            raise _refused(failure) from failure

    def _kubectl(self) -> JobCluster:
        """Return the cluster connection, renewed before its token expires."""
        if self._cluster is None or time.monotonic() - self._connected > _TOKEN_SECONDS:
            self._cluster, self._connected = self.connect(), time.monotonic()
        return self._cluster

    def _job(self, settings: JobSettings) -> dict[str, Any]:
        found = self._kubectl().get(
            *("jobs", "--namespace", settings.namespace),
            *("--field-selector", f"metadata.name={settings.name}"),
        )
        if not found:
            raise UserError(f"the Job {settings.name} no longer exists: somebody deleted it")
        return found[0]

    def _wait(self, settings: JobSettings) -> None:
        """Wait until the Job has ended, and show its progress from time to time."""
        began = time.monotonic()
        shown, last = began - _PROGRESS_SECONDS, ""
        while time.monotonic() - began < settings.deadline_seconds:
            job = self._job(settings)
            if holds(job, "Complete"):
                return
            if holds(job, "Failed"):
                reason = condition(job, "Failed").get("message", "no reason")
                raise UserError(f"the Job {settings.name} failed: {reason}: {self._log_end(settings)}")
            state = self._state(settings)
            if any(word in state for word in _NO_IMAGE):
                message = f"{settings.image} cannot be pulled: {state}; give another image with --image"
                raise UserError(message)
            now = time.monotonic()
            if state != last or now - shown >= _PROGRESS_SECONDS:
                past = f"{now - began:.0f} s of at most {settings.deadline_seconds} s"
                self.say(f"{settings.name}: {state}, {past}")
                shown, last = now, state
            time.sleep(self.poll_seconds)
        raise UserError(f"the Job {settings.name} did not end within {settings.deadline_seconds} s")

    def _state(self, settings: JobSettings) -> str:
        """Return the state of the Job's pod, or the reason why it is not ready."""
        labels = f"app.kubernetes.io/instance={settings.name}"
        pods = self._kubectl().get("pods", "--namespace", settings.namespace, "--selector", labels)
        if not pods:
            return "has no pod yet"
        return "is sending requests" if holds(pods[0], "Ready") else unready_reason(pods[0])

    def _log(self, settings: JobSettings) -> str:
        return self._kubectl().run(
            *("logs", "--namespace", settings.namespace, f"job/{settings.name}"),
            *("--container", job_objects.CONTAINER),
        )

    def _log_end(self, settings: JobSettings) -> str:
        """Return the last lines of the log, or that there are no lines."""
        try:
            lines = [line.strip() for line in self._log(settings).splitlines() if line.strip()]
        except KubectlFailed:
            return "no log is available"
        return " / ".join(lines[-_ERROR_LINES:]) or "its log is empty"

    def _delete(self, settings: JobSettings) -> None:
        """Delete the Job and its objects. Show a message if the cluster refuses."""
        where = ("--namespace", settings.namespace)
        try:
            self._kubectl().run("delete", "job", settings.name, *where, "--ignore-not-found", "--wait=false")
        except KubectlFailed as failure:
            self.say(
                f"{settings.name} is not deleted ({failure}); it will expire, or run: kubectl delete job "
                f"{settings.name} --namespace {settings.namespace}"
            )


def _refused(failure: KubectlFailed) -> UserError:
    """Return an error with the message of the cluster and the command that helps."""
    message = " ".join(str(failure).split())
    return UserError(f"the cluster refused: {message}; `blueprints verify` explains how to get access")
