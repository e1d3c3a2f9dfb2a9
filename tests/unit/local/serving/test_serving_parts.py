"""The table of parts never claims more than there is."""

from collections.abc import Callable, Sequence

from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.spec.types import Blueprint
from inference_local.serving.isolation import Isolation
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.platform_parts import PlatformPart
from inference_local.serving.serving_parts import describe


def _parts(
    deployments: Sequence[LocalDeployment], isolation: Isolation | None = None
) -> dict[str, PlatformPart]:
    return {part.name: part for part in describe(deployments, isolation or Isolation(1))}


def test_the_router_is_real_and_the_engines_are_not(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    parts = _parts(deployments_of(("l40s", 2)))
    states = {name: part.state for name, part in parts.items()}
    assert states == {
        "Frontends and router of answerer-l40s-0": "real",
        "Engines of answerer-l40s-0": "simulated",
        "Weights and tokenizer of answerer-l40s-0": "simulated",
        "Network of the models": "real",
    }


def test_the_relay_distributes_requests_in_turn(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    detail = _parts(deployments_of(("l40s", 2)))["Frontends and router of answerer-l40s-0"].detail
    assert "a relay replaces the load balancer and distributes requests in turn" in detail


def test_measured_latencies_name_their_source(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    deployments = deployments_of(("l40s", 2))
    detail = _parts(deployments)["Engines of answerer-l40s-0"].detail
    assert deployments[0].profile is not None
    assert deployments[0].profile.source in detail
    assert "simulated for Qwen/Qwen3-8B on 1 l40s" in detail


def test_unmeasured_latencies_give_no_throughput_or_price(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    detail = _parts(deployments_of(("l4", 2)))["Engines of answerer-l4-0"].detail
    assert "default curve, not those of l4: they give no throughput or price" in detail


def test_shared_processes_are_told(deployments_of: Callable[..., tuple[LocalDeployment, ...]]) -> None:
    parts = _parts(deployments_of(("l40s", 8), ("l40s", 20)))
    assert (
        "8 of Dynamo's mocker for vllm, one process per worker" in parts["Engines of answerer-l40s-0"].detail
    )
    assert "20 of Dynamo's mocker for vllm, in 8 processes" in parts["Engines of answerer-l40s-1"].detail


def test_a_missing_namespace_is_told_with_its_reason_and_what_it_means(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    part = _parts(deployments_of(("l40s", 1)), Isolation(None, "Operation not permitted"))[
        "Network of the models"
    ]
    assert part.state == "stubbed"
    assert "Operation not permitted" in part.detail
    assert "all interfaces" in part.detail


def test_dynamos_router_is_a_stand_in_for_that_of_another_stack(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    document = blueprint_of(("l40s", 2)).model_dump(by_alias=True, exclude_none=True)
    document["spec"]["models"][0]["stack"] = {"llmD": {}}
    blueprint = Blueprint.model_validate(document)
    deployments = LocalTarget(blueprint).render(build_plan(blueprint).models[0])
    parts = _parts(deployments)
    assert parts["Router of answerer-l40s-0"].state == "stand-in"
    assert "in place of llmD's router" in parts["Router of answerer-l40s-0"].detail
    assert parts["Engines of answerer-l40s-0"].state == "simulated"
    assert not [part for part in parts.values() if part.name.startswith("Frontends and router")]
    command = command_behind_filter(deployments[0].frontend.process)
    assert command == ("python3", "-m", "dynamo.frontend")
