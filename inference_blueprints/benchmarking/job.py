"""Asks an endpoint from within the cluster: a Job that is made, waited for, read and deleted."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from inference_blueprints.benchmarking import job_objects
from inference_blueprints.benchmarking.aiperf import Errand
from inference_blueprints.benchmarking.asking import Access
from inference_blueprints.benchmarking.job_objects import JobSettings, KubernetesObject
from inference_blueprints.catalog.charts import charts
from inference_blueprints.deployment.forwarding import forwarded
from inference_blueprints.deployment.kubectl import KubectlFailed
from inference_blueprints.deployment.verify.pods import unready_reason
from inference_blueprints.deployment.verify.subject import ClusterReader, condition, holds
from inference_blueprints.errors import UserError
from inference_blueprints.serving.types import DeploymentPlan

_POLL_SECONDS = 2.0
_TOLD_SECONDS = 15.0
#: A token lasts for 15 minutes (https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html).
_TOKEN_SECONDS = 600.0
_NAME_CHARACTERS = 40
_NO_IMAGE = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName")
_SAID_LINES = 3


class Cluster(ClusterReader, Protocol):
    """Kubectl as far as it is needed here."""

    def apply(self, objects: Sequence[KubernetesObject]) -> None:
        """Create objects."""


def settings_of(errand: Errand, namespace: str, image: str, access: Access) -> JobSettings:
    """Return what a Job for an errand says; each call gives another name.

    Parameters
    ----------
    errand
        What is asked.
    namespace
        The models'.
    image
        Has Python and aiperf.
    access
        What the endpoint asks of its callers.
    """
    return JobSettings(
        name=f"benchmark-{errand.model[:_NAME_CHARACTERS].rstrip('-.')}-{secrets.token_hex(4)}",
        namespace=namespace,
        image=image,
        seconds=errand.seconds,
        with_key=access.api_key is not None,
        with_authority=access.authority is not None,
    )


def objects(errand: Errand, namespace: str, image: str, access: Access) -> list[KubernetesObject]:
    """Return everything that would be made, but for the key and the Job's ownership of the rest.

    Parameters
    ----------
    errand
        What is asked.
    namespace
        The models'.
    image
        Has Python and aiperf.
    access
        What the endpoint asks of its callers.

    Raises
    ------
    UserError
        If there are too many questions.
    """
    settings = settings_of(errand, namespace, image, access)
    authority = access.authority.read_bytes() if access.authority else None
    key = "" if access.api_key else None
    others = job_objects.belongings(settings, None, packed_questions(errand), authority, key)
    return [job_objects.job(settings), *others]


def models_namespace(deployment: DeploymentPlan) -> str:
    """Return the namespace of a deployment's pods.

    Parameters
    ----------
    deployment
        Its plan.
    """
    return charts()[deployment.chart].namespace


def packed_questions(errand: Errand) -> bytes:
    """Return the document of an errand for a ConfigMap.

    Parameters
    ----------
    errand
        What is asked.

    Raises
    ------
    UserError
        If it is larger than a ConfigMap may be.
    """
    questions = errand.packed(job_objects.TOKENIZER)
    if len(questions) > job_objects.QUESTIONS_BYTES:
        raise UserError(
            f"{len(errand.questions):,} requests are {len(questions) / 1024**2:.1f} MiB, packed, and a "
            "ConfigMap holds 1 MiB: ask fewer with --requests or --seconds, or leave out --job and run this "
            "where the endpoint can be reached, such as on a machine in the VPC"
        )
    return questions


@dataclass(slots=True)
class InCluster:
    """Asks by a Job beside the models.

    Parameters
    ----------
    connect
        Opens the cluster; asked again before its token is too old.
    deployment
        One of the model's, through which this machine asks the first questions.
    access
        What the endpoint asks of its callers.
    image
        Has Python and aiperf.
    say
        Told how far it is.
    poll_seconds
        Time between two looks.
    """

    connect: Callable[[], Cluster]
    deployment: DeploymentPlan
    access: Access
    image: str
    say: Callable[[str], None]
    poll_seconds: float = _POLL_SECONDS
    _cluster: Cluster | None = field(default=None, init=False)
    _connected: float = field(default=0.0, init=False)

    @contextmanager
    def introduction(self, base_url: str) -> Iterator[str]:  # noqa: ARG002 - that is for the Job
        """Open a port of this machine that leads to one of the model's frontends.

        Parameters
        ----------
        base_url
            What the Job will ask.

        Raises
        ------
        UserError
            If no frontend is ready or can be reached.
        """
        entry, release = self.deployment.entry_point, self.deployment.release
        namespace = models_namespace(self.deployment)
        labels = f"app.kubernetes.io/instance={release},app.kubernetes.io/component={entry.name}"
        try:
            pods = self._kubectl().get("pods", "--namespace", namespace, "--selector", labels)
            ready = [pod["metadata"]["name"] for pod in pods if holds(pod, "Ready")]
            if not ready:
                raise UserError(f"{release}: no {entry.name} is ready; `blueprints verify` says why")
            with forwarded(self._kubectl(), namespace, ready[0], entry.ports[0].number) as address:
                yield address
        except KubectlFailed as failure:
            raise _refused(failure) from failure

    def ask(self, errand: Errand) -> str:
        """Make the Job, wait for its end and return what it printed; in the end it is deleted.

        Parameters
        ----------
        errand
            What is asked.

        Raises
        ------
        UserError
            If there are too many questions, the cluster refuses, the Job fails or does not end in time.
        """
        settings = settings_of(errand, models_namespace(self.deployment), self.image, self.access)
        questions = packed_questions(errand)
        authority = self.access.authority.read_bytes() if self.access.authority else None
        try:
            self._kubectl().apply([job_objects.job(settings)])
            try:
                uid = self._job(settings)["metadata"]["uid"]
                key = self.access.api_key
                self._kubectl().apply(job_objects.belongings(settings, uid, questions, authority, key))
                self._wait(settings)
                return self._said(settings)
            finally:
                self._delete(settings)
        except KubectlFailed as failure:
            raise _refused(failure) from failure

    def _kubectl(self) -> Cluster:
        """Return the cluster, opened anew before its token is too old."""
        if self._cluster is None or time.monotonic() - self._connected > _TOKEN_SECONDS:
            self._cluster, self._connected = self.connect(), time.monotonic()
        return self._cluster

    def _job(self, settings: JobSettings) -> dict[str, Any]:
        found = self._kubectl().get(
            *("jobs", "--namespace", settings.namespace),
            *("--field-selector", f"metadata.name={settings.name}"),
        )
        if not found:
            raise UserError(f"the Job {settings.name} is gone: somebody has deleted it")
        return found[0]

    def _wait(self, settings: JobSettings) -> None:
        """Look until the Job has ended, and say from time to time how far it is."""
        began = time.monotonic()
        told, last = began - _TOLD_SECONDS, ""
        while time.monotonic() - began < settings.deadline_seconds:
            job = self._job(settings)
            if holds(job, "Complete"):
                return
            if holds(job, "Failed"):
                reason = condition(job, "Failed").get("message", "no reason")
                raise UserError(f"the Job {settings.name} failed: {reason}: {self._last_words(settings)}")
            state = self._state(settings)
            if any(word in state for word in _NO_IMAGE):
                message = f"{settings.image} cannot be pulled: {state}; name a copy of it with --image"
                raise UserError(message)
            now = time.monotonic()
            if state != last or now - told >= _TOLD_SECONDS:
                past = f"{now - began:.0f} s of {settings.deadline_seconds} at the most"
                self.say(f"{settings.name}: {state}, {past}")
                told, last = now, state
            time.sleep(self.poll_seconds)
        raise UserError(f"the Job {settings.name} did not end within {settings.deadline_seconds} s")

    def _state(self, settings: JobSettings) -> str:
        """Say what the Job's pod does, or what it waits for."""
        labels = f"app.kubernetes.io/instance={settings.name}"
        pods = self._kubectl().get("pods", "--namespace", settings.namespace, "--selector", labels)
        if not pods:
            return "has no pod yet"
        return "asks" if holds(pods[0], "Ready") else unready_reason(pods[0])

    def _said(self, settings: JobSettings) -> str:
        return self._kubectl().run(
            *("logs", "--namespace", settings.namespace, f"job/{settings.name}"),
            *("--container", job_objects.CONTAINER),
        )

    def _last_words(self, settings: JobSettings) -> str:
        """Return the end of the log; nothing where there is none."""
        try:
            lines = [line.strip() for line in self._said(settings).splitlines() if line.strip()]
        except KubectlFailed:
            return "it has no log"
        return " / ".join(lines[-_SAID_LINES:]) or "it said nothing"

    def _delete(self, settings: JobSettings) -> None:
        """Delete the Job, and with it what it owns; say so where that is refused."""
        where = ("--namespace", settings.namespace)
        try:
            self._kubectl().run("delete", "job", settings.name, *where, "--ignore-not-found", "--wait=false")
        except KubectlFailed as failure:
            self.say(
                f"{settings.name} is not deleted ({failure}); it goes by itself, or with: kubectl delete job "
                f"{settings.name} --namespace {settings.namespace}"
            )


def _refused(failure: KubectlFailed) -> UserError:
    """Say what the cluster said, and who knows what to do."""
    words = " ".join(str(failure).split())
    return UserError(f"the cluster says: {words}; `blueprints verify` says what its API server wants of you")
