"""Which images the nodes of a pool need."""

from __future__ import annotations

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.nodes.node_share import images_digest, pool_images
from inference_blueprints.serving.plan import build_plan


def test_a_pool_s_images_are_those_of_its_processes() -> None:
    blueprint = load_blueprint("p5en-disaggregated").blueprint
    plan = build_plan(blueprint)
    processes = [
        process
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
    ]
    [pool] = blueprint.spec.pools
    assert pool_images(plan, pool.name) == tuple(
        sorted({process.image for process in processes if process.role != "frontend"})
    )
    assert pool_images(plan, "another") == ()


def test_the_digest_tells_images_apart_and_not_their_order() -> None:
    both = images_digest(["a:1", "b:2"])
    assert both == images_digest(["b:2", "a:1"])
    assert len({both, images_digest(["a:1"]), images_digest(["a:1b:2"]), images_digest(["a:1", "b:3"])}) == 4
    assert len(both) == 32
