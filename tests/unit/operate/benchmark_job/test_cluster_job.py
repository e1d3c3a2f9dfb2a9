"""A benchmark in a cluster from its Job to its records, with every way in which it can end."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.benchmarking import load_generators
from inference_blueprints.measure.benchmarking.load_generators import Access, LoadTest, Question
from inference_blueprints.operate.benchmark_job.cluster_job import (
    ClusterLoadGenerator,
    objects,
    packed_questions,
)
from inference_blueprints.operate.benchmark_job.job_objects import IMAGE
from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_contracts.errors import UserError
from tests.unit.measure.benchmarking.recorded import ANSWERED, said
from tests.unit.measure.benchmarking.test_aiperf import LOAD_TEST

KubernetesObject = dict[str, Any]
PENDING = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}]}
PULLING = {
    "conditions": [{"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [
        {"name": "aiperf", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}
    ],
}
RUNNING = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture(scope="module")
def deployment() -> DeploymentPlan:
    return build_plan(load_blueprint("quickstart-g6e").blueprint).models[0].deployments[0]


@dataclass
class FakeCluster:
    """Holds what it is given; its Job goes through states of its pod, one at each look."""

    states: list[KubernetesObject | None] = field(default_factory=list)
    ends: KubernetesObject = field(default_factory=lambda: {"type": "Complete", "status": "True"})
    log: str = field(default_factory=lambda: said(ANSWERED))
    refusals: dict[str, BaseException] = field(default_factory=dict)
    frontends: list[KubernetesObject] = field(default_factory=list)
    jobs: dict[str, KubernetesObject] = field(default_factory=dict)
    applied: list[KubernetesObject] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def apply(self, made: Sequence[KubernetesObject]) -> None:
        self._refuse("apply " + made[0]["kind"])
        self.applied += made
        for each in made:
            if each["kind"] == "Job":
                self.jobs[each["metadata"]["name"]] = {**each, "status": {}}
                each["metadata"] = {**each["metadata"]}
                self.jobs[each["metadata"]["name"]]["metadata"] = {**each["metadata"], "uid": "uid-1"}

    def get(self, *arguments: str) -> list[KubernetesObject]:
        kind, *options = arguments
        self._refuse(f"get {kind}")
        if kind == "jobs":
            if not self.states and len(self.applied) > 1:
                for job in self.jobs.values():
                    job["status"] = {"conditions": [self.ends]}
            return list(self.jobs.values())
        if "app.kubernetes.io/component=frontend" in options[-1]:
            return self.frontends
        state = self.states.pop(0)
        return [] if state is None else [{"metadata": {"name": "pod"}, "status": state}]

    def run(self, *arguments: str) -> str:
        self._refuse(arguments[0])
        if arguments[0] == "delete":
            assert self.jobs.pop(arguments[2])
            self.deleted.append(arguments[2])
        return self.log

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        raise KubectlFailed(f"no port: {arguments[-2]}")

    def _refuse(self, what: str) -> None:
        if what in self.refusals:
            raise self.refusals[what]


Make = Callable[..., ClusterLoadGenerator]


@pytest.fixture
def load_generator(deployment: DeploymentPlan) -> Make:
    def make(
        cluster: FakeCluster, *, access: Access | None = None, lines: list[str] | None = None
    ) -> ClusterLoadGenerator:
        say = (lines if lines is not None else []).append
        return ClusterLoadGenerator(
            lambda: cluster, deployment, access or Access(), IMAGE, say, poll_seconds=0.0
        )

    return make


def test_a_job_is_made_waited_for_read_and_deleted(load_generator: Make) -> None:
    cluster, lines = FakeCluster([None, PENDING, RUNNING]), list[str]()
    printed = load_generator(cluster, access=Access("sk-a-secret"), lines=lines).ask(LOAD_TEST)
    assert len(load_generators.outcomes(printed)) == 1
    assert [each["kind"] for each in cluster.applied] == ["Job", "ConfigMap", "Secret"]
    assert cluster.applied[1]["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert cluster.deleted == [cluster.applied[0]["metadata"]["name"]]
    states = [line.split(": ", 1)[1].rsplit(", ", 1)[0] for line in lines]
    assert states == ["has no pod yet", "has no node: 0/2 nodes are available", "is sending requests"]
    assert not any("sk-a-secret" in line for line in lines)


def test_names_are_new_each_time_and_short_enough(load_generator: Make) -> None:
    names = set()
    for _ in range(2):
        cluster = FakeCluster()
        load_generator(cluster).ask(LoadTest("http://host", "m" * 63, (), LOAD_TEST.questions))
        names.add(cluster.applied[0]["metadata"]["name"])
    assert len(names) == 2
    assert max(map(len, names)) <= 63


def test_an_image_that_cannot_be_pulled_ends_it_at_once(load_generator: Make) -> None:
    cluster = FakeCluster([PENDING, PULLING, RUNNING])
    with pytest.raises(
        UserError, match=r"cannot be pulled: aiperf is ImagePullBackOff: not found; .*--image"
    ):
        load_generator(cluster).ask(LOAD_TEST)
    assert not cluster.jobs


def test_a_job_that_fails_tells_its_last_words(load_generator: Make) -> None:
    failed = {"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}
    cluster = FakeCluster([RUNNING], ends=failed, log="loading\nerror: aiperf failed: no route\n")
    with pytest.raises(UserError, match="backoff limit: loading / error: aiperf failed: no route"):
        load_generator(cluster).ask(LOAD_TEST)
    assert not cluster.jobs


def test_a_job_that_fails_without_a_log_says_so(load_generator: Make) -> None:
    failed = {"type": "Failed", "status": "True", "message": "Job was active longer than specified deadline"}
    cluster = FakeCluster(ends=failed, refusals={"logs": KubectlFailed("no pods found")})
    with pytest.raises(UserError, match="specified deadline: no log is available"):
        load_generator(cluster).ask(LOAD_TEST)
    assert not cluster.jobs


@pytest.mark.parametrize("where", ["get pods", "apply ConfigMap", "logs"])
def test_ctrl_c_leaves_nothing_behind(where: str, load_generator: Make) -> None:
    cluster = FakeCluster([RUNNING], refusals={where: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        load_generator(cluster).ask(LOAD_TEST)
    assert len(cluster.deleted) == 1
    assert not cluster.jobs


def test_a_refusal_is_told_with_who_lets_one_in(load_generator: Make) -> None:
    cluster = FakeCluster(refusals={"apply Job": KubectlFailed('jobs.batch is forbidden: User "x" cannot')})
    with pytest.raises(UserError, match=r"jobs\.batch is forbidden.*`blueprints verify` explains"):
        load_generator(cluster).ask(LOAD_TEST)


def test_a_job_that_cannot_be_deleted_is_named(load_generator: Make) -> None:
    cluster, lines = FakeCluster(refusals={"delete": KubectlFailed("forbidden")}), list[str]()
    assert load_generator(cluster, lines=lines).ask(LOAD_TEST)
    assert "kubectl delete job benchmark-qwen-" in lines[-1]


def test_a_job_that_somebody_deletes_is_not_waited_for(load_generator: Make) -> None:
    cluster = FakeCluster([RUNNING] * 3)

    def taken(*arguments: str) -> list[KubernetesObject]:
        found = FakeCluster.get(cluster, *arguments)
        return [] if arguments[0] == "jobs" and len(cluster.states) == 1 else found

    cluster.get = taken  # type: ignore[method-assign]
    with pytest.raises(UserError, match="somebody deleted it"):
        load_generator(cluster).ask(LOAD_TEST)


def test_too_many_questions_are_refused_before_anything_is_made(load_generator: Make) -> None:
    blocks = tuple((16, number * 7919 % 2**61) for number in range(100))
    asked = [
        Question(0.1 * number, tuple((16, hash((number, seed)) % 2**61) for _, seed in blocks), 200)
        for number in range(2000)
    ]
    cluster = FakeCluster()
    with pytest.raises(UserError, match=r"2,000 requests take [\d.]+ MiB.*--requests.*leave out --job"):
        load_generator(cluster).ask(LoadTest("http://host", "qwen", (), asked))
    assert not cluster.applied


def test_a_stated_workload_of_the_most_requests_fits() -> None:
    asked = [Question(0.1 * number, ((3000, 2**60 + number), (200, 2**61)), 200) for number in range(10_000)]
    assert packed_questions(LoadTest("http://host", "qwen", (), asked))


def test_first_questions_go_to_a_ready_frontend(load_generator: Make) -> None:
    ready = {"metadata": {"name": "frontend-1"}, "status": RUNNING}
    waiting = {"metadata": {"name": "frontend-0"}, "status": PENDING}
    with (
        pytest.raises(UserError, match="no port: pod/frontend-1"),
        load_generator(FakeCluster(frontends=[waiting, ready])).open_address("http://model.internal"),
    ):
        pass
    with (
        pytest.raises(UserError, match="no frontend is ready"),
        load_generator(FakeCluster(frontends=[waiting])).open_address("http://model.internal"),
    ):
        pass


def test_the_cluster_is_opened_again_before_its_token_is_too_old(
    deployment: DeploymentPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, opened, cluster = [0.0], [], FakeCluster([RUNNING] * 4)

    def connect() -> FakeCluster:
        opened.append(now[0])
        return cluster

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda _: now.__setitem__(0, now[0] + 200.0))
    long = LoadTest("http://host", "qwen", (), [Question(3000.0, ((1, 1),), 1)])
    load_generator = ClusterLoadGenerator(connect, deployment, Access(), IMAGE, lambda _: None)
    load_generator.ask(long)
    assert opened == [0.0, 800.0]


def test_what_would_be_made_is_printed_without_the_key(deployment: DeploymentPlan) -> None:
    made = objects(LOAD_TEST, "inference", "registry/aiperf:1", Access("sk-a-secret"))
    text = yaml.safe_dump_all(made)
    assert [each["kind"] for each in yaml.safe_load_all(text)] == ["Job", "ConfigMap", "Secret"]
    assert "registry/aiperf:1" in text
    assert "sk-a-secret" not in text
    assert made[2]["data"] == {"apiKey": ""}
