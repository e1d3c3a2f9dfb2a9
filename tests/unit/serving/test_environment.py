"""Variables and images of workers and frontends in a blueprint: where they go, and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks.owned_environment import owner_reason
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint
from inference_catalog.catalogue import shipped
from inference_contracts.errors import Finding

Make = Callable[..., Blueprint]

RELEASE = catalog.engine("vllm").version
MIRROR = f"111122223333.dkr.ecr.us-west-2.amazonaws.com/vllm-runtime:{RELEASE}-ours@sha256:{'0a' * 32}"
#: What the plan sets and a blueprint may change: how much programs log, whether they report usage, and how
#: long they may compile.
CHANGEABLE = {
    "DYN_LOG",
    "LMCACHE_TRACK_USAGE",
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "TLLM_LOG_LEVEL",
    "TRTLLM_NO_USAGE_STATS",
    "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
    "VLLM_NEURON_COMPILATION_TIMEOUT",
    "VLLM_NO_USAGE_STATS",
}


def processes(blueprint: Blueprint) -> tuple[Process, ...]:
    return build_plan(blueprint).models[0].deployments[0].processes


def with_env(make: Make, frontend: bool, env: dict[str, Any]) -> Blueprint:  # noqa: FBT001
    return make(frontend={"env": env}) if frontend else make(engine={"vllm": {"env": env}})


def findings(blueprint: Blueprint) -> list[Finding]:
    places = {"env", "image", "frontend"}
    return [each for each in serving_findings(blueprint) if places & set(map(str, each.path))]


def each_process() -> Iterator[tuple[Process, str]]:
    for file in resources.blueprints_directory().glob("*.yaml"):
        for model in build_plan(load_blueprint(str(file)).blueprint).models:
            for deployment in model.deployments:
                yield from ((process, deployment.stack) for process in deployment.processes)


def test_what_the_plan_sets_is_refused() -> None:
    """A variable that both set would silently have one of the two values."""
    for process, _ in each_process():
        for name in process.environment.keys() - CHANGEABLE - {"HF_TOKEN"}:
            assert owner_reason(name, frontend=not process.is_worker), name


@pytest.mark.parametrize("stack", [{"dynamo": {}}, {"llmD": {}}])
def test_workers_get_the_engine_s_variables_and_frontends_get_none_of_them(
    make_blueprint: Make, stack: dict[str, Any]
) -> None:
    engine = {"vllm": {"env": {"NCCL_DEBUG": "WARN", "VLLM_LOGGING_LEVEL": "DEBUG"}}}
    frontend, worker = processes(make_blueprint(engine=engine, stack=stack))
    assert worker.environment["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert worker.environment["NCCL_DEBUG"] == "WARN"
    assert "VLLM_LOGGING_LEVEL" not in frontend.environment


def test_frontends_get_their_own_variables(make_blueprint: Make) -> None:
    frontend, worker = processes(make_blueprint(frontend={"env": {"DYN_LOG": "debug"}}))
    assert frontend.environment["DYN_LOG"] == "debug"
    assert str(worker.environment["DYN_LOG"]).startswith("info,")


def test_traces_do_not_change_the_logs_of_a_frontend(make_blueprint: Make) -> None:
    plain, _ = processes(make_blueprint())
    document = make_blueprint().model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["observability"] = {"traces": {"sampleRatio": 0.01}}
    frontend, _ = processes(Blueprint.model_validate(document))
    assert frontend.environment["OTEL_EXPORT_ENABLED"] == "true"
    [logs, plain_logs] = (
        {name: value for name, value in each.environment.items() if name.startswith("DYN_LOG")}
        for each in (frontend, plain)
    )
    assert logs == plain_logs


@pytest.mark.parametrize(
    ("cluster", "endpoint"),
    [
        ({"eks": {"version": "1.35"}}, "http://cloudwatch-agent.amazon-cloudwatch.svc:4317"),
        ({"ecs": {}}, "http://collector.{name}-metrics.internal:4317"),
    ],
)
def test_traces_go_to_the_agent_of_the_cluster(
    make_blueprint: Make, cluster: dict[str, Any], endpoint: str
) -> None:
    document = make_blueprint().model_dump(by_alias=True, exclude_unset=True)
    document["spec"] |= {"cluster": cluster, "observability": {"traces": {}}}
    expected = endpoint.format(name=document["metadata"]["name"])
    for process in processes(Blueprint.model_validate(document)):
        assert process.environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] == expected


def test_a_frontend_with_a_vocabulary_of_its_own_reaches_no_host_for_it(make_blueprint: Make) -> None:
    weights = {"huggingFace": "openai/gpt-oss-20b", "revision": "main"}
    host = catalog.answer_formats()["harmony"].vocabulary_host
    own = {"env": {"TIKTOKEN_ENCODINGS_BASE": "/vocabularies"}}
    [downloading, local] = [
        processes(make_blueprint(weights=weights, **more))[0].environment["NO_PROXY"]
        for more in ({}, {"frontend": own})
    ]
    assert str(host) in str(downloading)
    assert str(host) not in str(local)


@pytest.mark.parametrize("frontend", [False, True], ids=["worker", "frontend"])
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "DYN_NAMESPACE",
            "mine",
            "the platform sets 'DYN_NAMESPACE' itself; the plan and Dynamo's operator connect",
        ),
        ("FI_PROVIDER", "tcp", "the platform sets 'FI_PROVIDER' itself; it follows from the pool's 'efa'"),
        ("DYN_ROUTER_MODE", "kv", "the platform sets 'DYN_ROUTER_MODE' itself; set 'routing' of the model"),
        ("AWS_ACCESS_KEY_ID", "x", "the platform sets 'AWS_ACCESS_KEY_ID' itself; pods have the identity"),
        ("HF_TOKEN", "x", "'HF_TOKEN' looks like a secret"),
        ("VLLM_API_KEY", "x", "'VLLM_API_KEY' looks like a secret"),
        ("HARMLESS", "hf_" + "a" * 34, "'HARMLESS' looks like a secret"),
        ("1ST", "x", "got '1ST', allowed are up to 128 letters, digits and underscores"),
        ("LONG", "x" * 4097, "got 4097 characters, allowed are 4096"),
        ("LINES", "a\nb", "got a line break or another control character"),
        ("OTHER", "$(POD_IP)", "got '$(', which Kubernetes would replace"),
    ],
)
def test_a_variable_is_refused_with_the_reason(
    make_blueprint: Make, name: str, value: str, expected: str, *, frontend: bool
) -> None:
    [finding] = findings(with_env(make_blueprint, frontend, {name: value}))
    assert finding.severity == "error"
    assert finding.path[-2:] == ("env", name)
    assert finding.message.startswith(expected)
    assert "a" * 34 not in finding.message


@pytest.mark.parametrize(("frontend", "count"), [(False, 0), (True, 1)], ids=["worker", "frontend"])
def test_only_frontends_have_no_proxy(make_blueprint: Make, count: int, *, frontend: bool) -> None:
    assert len(findings(with_env(make_blueprint, frontend, {"https_proxy": "http://10.0.0.9:3128"}))) == count


def test_a_variable_that_the_engine_does_not_define_is_a_warning(make_blueprint: Make) -> None:
    names = {"VLLM_LOGING_LEVEL": "DEBUG", "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD": "1", "OTHER_X": "1"}
    [finding] = findings(make_blueprint(engine={"vllm": {"env": names}}))
    assert finding.severity == "warning"
    assert "which vllm 0.31.0 does not define; did you mean 'VLLM_LOGGING_LEVEL'?" in finding.message


@pytest.mark.parametrize(("engine", "release"), [("vllm", "0.33.0"), ("sglang", "0.5.23")])
def test_the_names_of_a_named_release_are_its_own(make_blueprint: Make, engine: str, release: str) -> None:
    """A release without Dynamo is checked against what its own wheel defines."""
    own = shipped().engine_releases[engine][release].environment_names
    pinned = catalog.environment_names()[engine].names
    newer, older = min({*own} - {*pinned}), min({*pinned} - {*own})
    section = {"image": {"release": release}, "env": {newer: "1", older: "1"}}
    [found] = [
        each
        for each in findings(make_blueprint(engine={engine: section}, stack={"direct": {}}))
        if "env" in each.path
    ]
    assert (found.path[-1], found.severity) == (older, "warning")
    assert f"which {engine} {release} does not define" in found.message


def test_recorded_names_are_of_the_pinned_engines() -> None:
    """Otherwise a variable that a newer release defines would get a warning, or none would."""
    for name, recorded in catalog.environment_names().items():
        assert recorded.release == catalog.engine(name).engine_version
        assert len(recorded.names) > 200


def test_workers_and_frontends_have_the_blueprint_s_images(make_blueprint: Make) -> None:
    image = {"name": MIRROR, "release": RELEASE}
    frontend_image = MIRROR.replace("vllm-runtime", "dynamo-frontend")
    blueprint = make_blueprint(engine={"vllm": {"image": image}}, frontend={"image": frontend_image})
    frontend, worker = processes(blueprint)
    assert (frontend.image, worker.image) == (frontend_image, MIRROR)
    assert not findings(blueprint)


@pytest.mark.parametrize(
    ("name", "release", "severity", "expected"),
    [
        (MIRROR, "9.9.9", "error", "got '9.9.9', whose flags are not recorded"),
        (MIRROR.partition("@")[0], RELEASE, "warning", "without a digest, so its content can change"),
        (
            MIRROR.replace(f":{RELEASE}", ":new"),
            RELEASE,
            "error",
            f"it must begin with the release '{RELEASE}'",
        ),
    ],
)
def test_an_image_that_is_not_certain_is_reported(
    make_blueprint: Make, name: str, release: str, severity: str, expected: str
) -> None:
    [finding] = findings(make_blueprint(engine={"vllm": {"image": {"name": name, "release": release}}}))
    assert finding.severity == severity
    assert expected in finding.message
