"""The picture: what it shows, that nothing overlaps, that it is drawn from the blueprint."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import combinations, groupby
from typing import Any
from xml.etree import ElementTree

import pytest
import resvg_py

from inference_blueprints.report.picture.blocks import Canvas, Way
from inference_blueprints.report.picture.drawing import Area, Arrow, Circle, Rectangle, Text, png
from inference_blueprints.report.picture.flows import flows
from inference_blueprints.report.picture.picture import WIDTH, draw, picture
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint, Spec
from inference_contracts.errors import UserError
from tests.unit.plan_samples import ChangedScene

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="session")
def drawing(scene: Scene) -> tuple[Canvas, float]:
    """Return the canvas of the scene, and its height."""
    return draw(scene)


@pytest.fixture(scope="session")
def canvas(drawing: tuple[Canvas, float]) -> Canvas:
    return drawing[0]


def _texts(canvas: Canvas) -> list[Text]:
    return [shape for shape in canvas.shapes if isinstance(shape, Text)]


def _all_words(canvas: Canvas) -> str:
    return "\n".join(whole for whole, _ in groupby(text.whole or text.text for text in _texts(canvas)))


def _words(scene: Scene) -> str:
    return _all_words(draw(scene)[0])


def test_no_two_texts_overlap(canvas: Canvas) -> None:
    areas = [(text.text, text.area) for text in _texts(canvas)]
    overlapping = [
        (one, other) for (one, area), (other, second) in combinations(areas, 2) if area.overlaps(second)
    ]
    assert overlapping == []


def test_no_two_cards_overlap(canvas: Canvas) -> None:
    """Callers stand beside what they call: two of them that are higher than their rows turn this red."""
    overlapping = [one for one, other in combinations(_cards(canvas), 2) if one.overlaps(other)]
    assert overlapping == []


def _cards(canvas: Canvas) -> list[Area]:
    return [
        shape.area for shape in canvas.shapes if isinstance(shape, Rectangle) and shape.stroke == "#c6cdd3"
    ]


def test_everything_is_inside_the_canvas(drawing: tuple[Canvas, float]) -> None:
    canvas, height = drawing
    ground = Area(0, 0, WIDTH, height)
    areas = [shape.area for shape in canvas.shapes if isinstance(shape, Text | Rectangle)]
    assert [area for area in areas if not ground.contains(area)] == []


def test_texts_stay_inside_the_boxes_in_which_they_begin(canvas: Canvas) -> None:
    """In the widest of the common fonts; a text that is not wrapped turns this red."""
    boxes = [shape.area for shape in canvas.shapes if isinstance(shape, Rectangle)]
    for text in _texts(canvas):
        around = [box for box in boxes if box.overlaps(Area(text.area.x, text.y - 5, 1, 1))]
        assert all(box.contains(text.area) for box in around), text.text


def test_arrows_cross_no_text_and_no_card(canvas: Canvas) -> None:
    """An arrow between two blocks with a third one between them turns this red."""
    words = [text.area for text in _texts(canvas) if not text.text.isdigit()]
    for arrow in (shape for shape in canvas.shapes if isinstance(shape, Arrow)):
        (x1, y1), (x2, y2) = arrow.start, arrow.end
        across, along = (1, 0) if x1 == x2 else (0, 1)
        line = Area(
            min(x1, x2) - across, min(y1, y2) - along, abs(x2 - x1) + 2 * across, abs(y2 - y1) + 2 * along
        )
        assert [area for area in (*words, *_cards(canvas)) if area.overlaps(line)] == []


def test_the_number_of_an_arrow_touches_no_border(canvas: Canvas) -> None:
    circles = [shape for shape in canvas.shapes if isinstance(shape, Circle)]
    for circle in circles:
        space = Area(circle.x - 10, circle.y - 10, 20, 20)
        assert all(
            shape.area.contains(space) or not shape.area.overlaps(space)
            for shape in canvas.shapes
            if isinstance(shape, Rectangle)
        )


def test_every_common_font_has_each_character(canvas: Canvas) -> None:
    """An arrow in a text turns this red: Noto Sans has none, and draws a box."""
    assert [text.text for text in _texts(canvas) if not text.text.isascii()] == []


def test_arrows_join_the_two_blocks_of_their_flows(scene: Scene, canvas: Canvas) -> None:
    """Workers took shards from the box above them, the batch API, though the sentence said the queues."""
    last_circle = max(n for n, shape in enumerate(canvas.shapes) if isinstance(shape, Circle))
    arrows = [shape for shape in canvas.shapes[:last_circle] if isinstance(shape, Arrow)]
    for flow, arrow in zip(flows(scene), arrows, strict=True):
        for name, (x, y) in ((flow.start, arrow.start), (flow.end, arrow.end)):
            ends = [*_borders_at(x, y, list(canvas.anchors.values())), *_borders_at(x, y, _cards(canvas))]
            assert set(ends) == {canvas.anchors[name]}, flow
            cards_inside = [card for card in _cards(canvas) if canvas.anchors[name].contains(card)]
            assert name in _GROUPS or cards_inside == [canvas.anchors[name]], flow


#: Frames that a sentence means as a whole: what they hold is not told apart there.
_GROUPS = {"by-model", "by-way", "controllers", "frontends", "operations", "pools", "private", "services"}


def _borders_at(x: float, y: float, boxes: list[Area]) -> list[Area]:
    """Return the boxes that have a point on their border, not at a corner."""
    return [
        box
        for box in boxes
        if (y in {box.y, box.bottom} and box.x < x < box.right)
        or (x in {box.x, box.right} and box.y < y < box.bottom)
    ]


def test_it_can_be_read_at_page_width(scene: Scene, canvas: Canvas) -> None:
    assert min(text.size for text in _texts(canvas)) >= 12
    document = ElementTree.fromstring(picture(scene.blueprint, scene.plan))  # noqa: S314 - our own text
    assert (document.get("viewBox") or "").split()[2] == "1000"
    assert document.findtext(f"{_SVG}title")
    assert document.findtext(f"{_SVG}desc")


def test_every_model_pool_and_instance_type_is_named(scene: Scene, canvas: Canvas) -> None:
    words = _all_words(canvas)
    spec = scene.blueprint.spec
    for name in [*(model.name for model in spec.models), *(pool.name for pool in spec.pools)]:
        assert name in words
    for pool in spec.pools:
        assert ", ".join(pool.instance_types) in words


def test_every_device_that_a_worker_holds_is_filled(changed: ChangedScene) -> None:
    def two_models(spec: dict[str, Any]) -> None:
        spec["pools"][0] = {"name": "l40s", "instanceTypes": ["g6e.12xlarge"], "nodes": {"max": 2}}
        second = {**spec["models"][0], "name": "second"}
        spec["models"].append(second)

    canvas, _ = draw(changed(two_models))
    devices = [
        shape
        for shape in canvas.shapes
        if isinstance(shape, Rectangle) and shape.area.width == 14 and shape.area.height == 14
    ]
    assert sorted(device.fill for device in devices) == ["#0072b2"] * 2 + ["#a34a00"] * 2


def test_it_follows_the_blueprint(changed: ChangedScene) -> None:
    quickstart = _words(changed(lambda spec: spec))
    assert "NAT gateways" in quickstart
    assert "Hugging Face Hub" in quickstart
    assert "HTTP, port 80" in quickstart
    assert "Weights" not in quickstart.splitlines()
    assert "the blocks in their KV cache" in quickstart

    def other(spec: dict[str, Any]) -> None:
        spec["environment"]["account"] = "111122223333"
        spec["network"] = {
            "existing": {
                "vpcId": "vpc-0a1b2c3d",
                "vpcCidr": "10.20.0.0/16",
                "privateSubnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e"],
            },
            "certificateArn": "arn:aws:acm:us-west-2:111122223333:certificate/1",
            "domain": "models.example",
        }
        spec["models"][0]["weights"] = {"s3": "s3://acme/qwen/", "catalog": "Qwen/Qwen3-8B"}
        spec["models"][0]["routing"] = {"roundRobin": {}}

    words = _words(changed(other))
    assert "NAT gateways" not in words
    assert "Hugging Face Hub" not in words
    assert "HTTPS, port 443" in words
    assert "https://qwen3-8b.models.example/v1" in words
    assert "AWS account 111122223333" in words
    assert "Weights" in words.splitlines()
    assert "the blocks in their KV cache" not in words
    assert "in turn" in words


def test_an_embedding_model_has_a_vector_where_others_have_answers(changed: ChangedScene) -> None:
    def embedding(spec: dict[str, Any]) -> None:
        [model] = spec["models"]
        model["objectives"] = {}
        model |= {"task": "embed", "stack": {"llmD": {}}}
        model["workload"] = {"inputTokens": 500, "peakRequestsPerSecond": 2}

    words = _words(changed(embedding))
    assert "500 tokens in, a vector out, 2/s" in words
    assert "0 out" not in words


def test_a_model_without_a_router_is_shown_behind_the_load_balancer(changed: ChangedScene) -> None:
    words = _words(changed(lambda spec: spec["models"][0].update(stack={"direct": {}})))
    assert "no router, 2 servers" in words.splitlines()
    sentences = " ".join(words.split())
    assert "the worker with the fewest open requests" in sentences
    assert "passes the request to the model's workers by the host name" in sentences


def test_a_platform_on_ecs_without_frontends_has_no_discovery_store(changed: ChangedScene) -> None:
    def direct(spec: dict[str, Any]) -> None:
        spec["cluster"] = {"ecs": {}}
        spec["models"][0].update(stack={"direct": {}})

    words = _words(changed(direct))
    assert "Capacity providers" in words
    assert "iscovery" not in words


def test_a_picture_of_models_with_and_without_a_router_names_both(changed: ChangedScene) -> None:
    def both(spec: dict[str, Any]) -> None:
        [model] = spec["models"]
        spec["models"] = [model, model | {"name": "direct", "stack": {"direct": {}}}]
        spec["pools"][0]["nodes"]["max"] = 8

    words = " ".join(_words(changed(both)).split())
    assert "passes the request to the model's frontends or workers by the host name" in words


def test_names_cannot_break_out_of_the_document(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec["models"][0]["weights"].update(revision="main"))
    blueprint = scene.blueprint.model_copy(
        update={"metadata": scene.blueprint.metadata.model_copy(update={"name": 'a<b>&"c"'})}
    )
    document = ElementTree.fromstring(picture(blueprint, scene.plan))  # noqa: S314 - our own text
    assert document.findtext(f"{_SVG}title") == 'Platform of the blueprint a<b>&"c"'


def test_it_is_self_contained_and_the_same_each_time(scene: Scene) -> None:
    once = picture(scene.blueprint, scene.plan)
    assert once == picture(scene.blueprint, scene.plan)
    assert re.findall(r"(?:href|src)=|url\((?!#)|@import|<script", once) == []


def test_roles_are_told_apart(shipped_scene: Callable[[str], Scene]) -> None:
    words = _words(shipped_scene("p5en-disaggregated"))
    assert "12 prefill workers of 1 GPU" in words
    assert "1 decode worker of 4 GPUs" in words
    assert "goes over EFA to the decode worker" in words
    dots = [
        shape
        for shape in draw(shipped_scene("p5en-disaggregated"))[0].shapes
        if isinstance(shape, Rectangle) and shape.area.width == 6 and shape.fill == "#ffffff"
    ]
    assert len(dots) == 4 + 1  # the decode worker's devices, and the sign in the legend


def test_without_roles_nothing_is_said_of_them(changed: ChangedScene) -> None:
    words = _words(changed(lambda spec: spec))
    assert "decode" not in words


def test_llm_d_has_routers_and_hears_of_caches_with_the_precise_scorer_alone(
    shipped_scene: Callable[[str], Scene],
) -> None:
    precise = shipped_scene("llm-d-disaggregated")
    assert "2 llm-d routers" in _words(precise)
    assert "the blocks in their KV cache" in _words(precise)
    document = precise.blueprint.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["spec"]["models"][0]["stack"] = {"llmD": {"prefixScorer": "approximate"}}
    blueprint = Blueprint.model_validate(document)
    assert "the blocks in their KV cache" not in _words(Scene(blueprint, build_plan(blueprint)))


_EXISTING = {
    "vpcCidr": "10.20.0.0/16",
    "privateSubnetIds": [f"subnet-0a1b2c3{letter}" for letter in "abcd"],
}
#: How each section of a blueprint is named in its picture.
_SECTIONS: dict[str, Callable[[Spec], list[str]]] = {
    "environment": lambda spec: [spec.environment.region],
    "network": lambda spec: ["HTTPS, port 443" if spec.network.certificate_arn else "HTTP, port 80"],
    "cluster": lambda spec: ["Amazon ECS" if spec.cluster.ecs else f"Amazon EKS {spec.cluster.eks.version}"],  # type: ignore[union-attr]
    "pools": lambda spec: [pool.name for pool in spec.pools],
    "queueing": lambda _: ["Kueue"],
    "models": lambda spec: [model.name for model in spec.models],
    "teams": lambda spec: [team.name for team in spec.teams],
    "front_door": lambda _: ["Front door", "Budgets and keys", "Usage records"],
    "batch": lambda spec: ["Batch API", "Batch workers", *(queue.name for queue in spec.batch.queues)],  # type: ignore[union-attr]
    "signal_store": lambda _: ["Signal store", "ElastiCache for Valkey"],
    "kafka": lambda _: ["Amazon MSK"],
    "streaming": lambda spec: ["Streaming jobs", *(job.name for job in spec.streaming)],
    "observability": lambda _: ["CloudWatch"],
    "capacity_shift": lambda _: ["Capacity shift"],
    "gpu_health": lambda _: ["GPU health"],
}


def test_every_section_that_is_set_is_in_the_picture(scene: Scene, canvas: Canvas) -> None:
    """A section that is forgotten here, or has a sentence and no box, turns this red."""
    spec = scene.blueprint.spec
    assert _SECTIONS.keys() == Spec.model_fields.keys()
    sentences = {flow.sentence for flow in flows(scene)}
    words = "\n".join(text.whole for text in _texts(canvas) if text.whole not in sentences)
    shown = [word for name, words_of in _SECTIONS.items() if getattr(spec, name) for word in words_of(spec)]
    assert [word for word in shown if word not in words] == []


def test_batch_calls_the_models_and_writes_to_files_and_the_store(
    shipped_scene: Callable[[str], Scene], changed: ChangedScene
) -> None:
    scene = shipped_scene("batch-g6e")
    words = _words(scene).splitlines()
    assert {"Teams", "ads", "nightly", "2 to 6 per model", "pods on system nodes"} <= set(words)
    assert _ends(scene, Way.BATCH) == [
        ("teams", "api"),
        ("api", "files"),
        ("api", "queues"),
        ("queues", "workers"),
        ("workers", "balancer"),
        ("workers", "files"),
        ("files", "publisher"),
        ("publisher", "store"),
    ]
    assert ("store", "readers") in _ends(scene, Way.REAL_TIME)
    assert _ends(changed(lambda spec: spec), Way.BATCH) == []

    def on_fargate(spec: dict[str, Any]) -> None:
        arn = "arn:aws:iam::111122223333:role/ads"
        rates = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 0.4}
        spec["teams"] = [{"name": "ads", "principals": [arn], "monthlyBudgetUsd": 10}]
        spec["batch"] = {
            "queues": [{"name": f"q{number}", "model": "qwen3-8b", "rates": rates} for number in range(5)],
            "workers": {"min": 3, "max": 3, "ecs": {"spotPercent": 50}},
        }

    tasks = changed(on_fargate)
    words = _words(tasks).splitlines()
    assert {"AWS Fargate, 50 % Spot", "3 per model", "q0, q1, and 3 more"} <= set(words)
    assert "Signal store" not in words
    canvas, _ = draw(tasks)
    test_no_two_texts_overlap(canvas)
    test_arrows_cross_no_text_and_no_card(canvas)


def _ends(scene: Scene, way: Way) -> list[tuple[str, str]]:
    """Return which blocks the arrows of a way join."""
    return [(flow.start, flow.end) for flow in flows(scene) if flow.way is way]


def test_an_event_becomes_a_signal_inside_the_vpc(
    shipped_scene: Callable[[str], Scene], changed: ChangedScene
) -> None:
    """Kafka and the store stood outside the VPC, and no arrow led to the model."""
    scene = shipped_scene("streaming-g6e")
    assert _ends(scene, Way.NEAR_REAL_TIME) == [
        ("events", "kafka"),
        ("kafka", "jobs"),
        ("jobs", "balancer"),
        ("jobs", "store"),
    ]
    anchors = draw(scene)[0].anchors
    assert all(anchors["private"].contains(anchors[name]) for name in ("kafka", "jobs", "store", "balancer"))
    words = _words(scene).splitlines()
    assert {"topics: clicks", "3 Express brokers, express.m7g.large", "Managed Flink, 1 KPU"} <= set(words)
    assert _ends(changed(lambda spec: spec), Way.NEAR_REAL_TIME) == []


def test_all_sections_fit_beside_one_another(shipped_scene: Callable[[str], Scene]) -> None:
    """Long names, four zones, a VPC of one's own and all three ways in: what does not wrap turns this red."""
    documents = [
        shipped_scene(name).blueprint.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in ("capacity-and-health", "streaming-g6e")
    ]
    spec, streaming = (document["spec"] for document in documents)
    spec |= {name: streaming[name] for name in ("kafka", "streaming", "signalStore")}
    spec["environment"]["availabilityZones"] = [f"us-west-2{letter}" for letter in "abcd"]
    spec["observability"] = {"traces": {}}
    name = "a-name-of-as-many-as-forty-letters-and-on"[:40]
    spec["models"][0]["name"] = spec["streaming"][0]["model"] = name
    spec["batch"]["queues"] = [{**spec["batch"]["queues"][0], "model": name, "name": name}]
    spec["streaming"][0]["name"] = name
    for network in ({}, {"existing": {**_EXISTING, "vpcId": "vpc-0a1b2c3d4e5f60718"}}):
        spec["network"] = network
        blueprint = Blueprint.model_validate(documents[0])
        scene = Scene(blueprint, build_plan(blueprint))
        drawn = draw(scene)
        test_no_two_texts_overlap(drawn[0])
        test_no_two_cards_overlap(drawn[0])
        test_everything_is_inside_the_canvas(drawn)
        test_texts_stay_inside_the_boxes_in_which_they_begin(drawn[0])
        test_arrows_cross_no_text_and_no_card(drawn[0])
        test_every_section_that_is_set_is_in_the_picture(scene, drawn[0])


def test_a_private_registry_is_not_the_internet(changed: ChangedScene) -> None:
    """Images from Amazon ECR were drawn as coming from the internet, and so was a registry of one's own."""

    def image(name: str) -> Scene:
        engine = {"vllm": {"image": {"name": name, "release": "1.6.1"}}}
        return changed(lambda spec: spec["models"][0].update(engine=engine))

    host = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
    in_account = draw(image(f"{host}/nvcr/vllm-runtime:1.6.1"))[0]
    words = _all_words(in_account).splitlines()
    card = words.index("Private registry")
    assert words[card + 1] == host
    assert f"container images from Amazon ECR ({host})" in _all_words(in_account)
    assert host not in words[words.index("Internet") :][:4]
    for far in (
        "111122223333.dkr-ecr.us-west-2.on.aws",
        "111122223333.dkr.ecr-fips.us-west-2.amazonaws.com",
        "111122223333.dkr.ecr.eu-west-1.amazonaws.com",
    ):
        canvas = draw(image(f"{far}/vllm-runtime:1.6.1"))[0]
        words = _all_words(canvas).splitlines()
        assert any(f"Amazon ECR's public endpoint ({far})" in sentence for sentence in words)
        assert "Amazon ECR's public endpoint" in words[words.index("Internet") :][:4]
        assert "Private registry" not in words
        test_no_two_texts_overlap(canvas)
    assert "Internet" not in _words(image("registry.acme.example/vllm-runtime:1.6.1")).splitlines()


def test_capacity_and_health_are_shown(shipped_scene: Callable[[str], Scene]) -> None:
    words = _words(shipped_scene("capacity-and-health")).splitlines()
    shown = {
        "KEDA",
        "Kueue",
        "4 to 12 workers of 1 GPU",
        "Batch API",
        "CloudWatch",
        "GPU health",
        "Capacity shift",
    }
    assert shown <= set(words)
    assert {"KEDA", "Kueue"}.isdisjoint(_words(shipped_scene("quickstart-g6e")).splitlines())


def test_two_deployments_share_the_rate_of_their_model(changed: ChangedScene) -> None:
    def two_deployments(spec: dict[str, Any]) -> None:
        spec["pools"][0]["nodes"] = {"max": 4}
        [main] = spec["models"][0]["deployments"]
        spec["models"][0]["deployments"].append({**main, "name": "canary"})

    words = _words(changed(two_deployments))
    assert words.count("out, 1 of 2/s") == 2
    assert "out, 2/s" not in words


def _with_deployments_of_ways(shipped_scene: Callable[[str], Scene], ways: set[str]) -> Scene:
    """Return a platform with all three ways in, where some have a deployment of their own."""
    documents = [
        shipped_scene(name).blueprint.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in ("batch-g6e", "streaming-g6e")
    ]
    spec, streaming = (document["spec"] for document in documents)
    spec |= {name: streaming[name] for name in ("kafka", "streaming")}
    spec["signalStore"] = streaming["signalStore"]
    [model], [queue], [job] = spec["models"], spec["batch"]["queues"], spec["streaming"]
    [main] = model["deployments"]
    job["model"] = queue["model"] = model["name"]
    model["workload"]["inputTokens"] = {"mean": 1000, "max": 4000}
    if "queue" in ways:
        queue["deployments"] = ["night"]
        images = {"mean": 1.5, "max": 4}
        queue["workload"] = {"inputTokens": {"mean": 20000, "max": 30000}, "outputTokens": 100}
        queue["workload"]["promptImages"] = images
        model["media"] = {"imagesPerRequest": 4, "tokensPerImage": 1000, "allowedDomains": ["a.example"]}
        model["deployments"].append({**main, "name": "night"})
    if "job" in ways:
        job["deployments"] = ["clicks"]
        model["deployments"].append({**main, "name": "clicks"})
    spec["pools"][0]["nodes"]["max"] = 9
    blueprint = Blueprint.model_validate(documents[0])
    return Scene(blueprint, build_plan(blueprint))


def test_requests_go_to_the_deployments_that_their_way_has_for_itself(
    shipped_scene: Callable[[str], Scene],
) -> None:
    """All went to all deployments, and that of a queue had the lengths and the rate of real time."""
    scene = _with_deployments_of_ways(shipped_scene, {"queue", "job"})
    assert _ends(scene, Way.REAL_TIME)[-1] == ("balancer", "by-model")
    assert _ends(scene, Way.BATCH)[-1] == _ends(scene, Way.NEAR_REAL_TIME)[-1] == ("balancer", "by-way")
    drawn = draw(scene)
    words = " ".join(_all_words(drawn[0]).split())
    assert "1,000 tokens in (at most 4,000), 200 out, 2/s" in words
    assert "queue nightly: 20,000 tokens in (at most 30,000) with 1.5 images, 100 out" in words
    assert "qwen3-8b--batch.batch.internal leads to qwen3-8b/night, for queue nightly." in words
    assert "--shopper.batch.internal leads to qwen3-8b/clicks, for streaming job shopper." in words
    assert "call the model at an address of their own" in words
    assert "one name per model, and 2 more" in words
    inside: dict[str, list[str]] = {name: [] for name in ("by-model", "by-way")}
    for text in _texts(drawn[0]):
        for name, found in inside.items():
            if text.bold and drawn[0].anchors[name].contains(text.area):
                found.append(text.whole)
    assert "qwen3-8b/jobs" in inside["by-model"]
    assert {"qwen3-8b/night", "qwen3-8b/clicks"} <= set(inside["by-way"])
    test_no_two_texts_overlap(drawn[0])
    test_no_two_cards_overlap(drawn[0])
    test_everything_is_inside_the_canvas(drawn)
    test_texts_stay_inside_the_boxes_in_which_they_begin(drawn[0])
    test_arrows_cross_no_text_and_no_card(drawn[0])
    test_the_number_of_an_arrow_touches_no_border(drawn[0])
    test_arrows_join_the_two_blocks_of_their_flows(scene, drawn[0])


@pytest.mark.parametrize("ways", [set(), {"queue"}, {"queue", "job"}], ids=["none", "queue", "both"])
def test_requests_pass_the_front_door(shipped_scene: Callable[[str], Scene], ways: set[str]) -> None:
    """Red if an arrow leads around the door, or crosses it."""
    document = _with_deployments_of_ways(shipped_scene, ways).blueprint.model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    spec = document["spec"]
    spec["network"] = {
        "certificateArn": "arn:aws:acm:us-west-2:111122223333:certificate/1",
        "domain": "models.example.com",
    }
    spec["models"][0]["rates"] = spec["batch"]["queues"][0]["rates"]
    spec["frontDoor"] = {}
    blueprint = Blueprint.model_validate(document)
    scene = Scene(blueprint, build_plan(blueprint))
    drawn = draw(scene)
    ends = [(flow.start, flow.end) for flow in flows(scene)]
    frontends = "by-model" if ways else "frontends"
    assert {("balancer", "door"), ("door", frontends), ("door", "ledger")} <= set(ends)
    assert ("balancer", frontends) not in ends
    assert (("balancer", "by-way") in ends) is bool(ways)
    assert "https://api.models.example.com/v1, with API keys" in " ".join(_all_words(drawn[0]).split())
    test_no_two_texts_overlap(drawn[0])
    test_no_two_cards_overlap(drawn[0])
    test_texts_stay_inside_the_boxes_in_which_they_begin(drawn[0])
    test_arrows_cross_no_text_and_no_card(drawn[0])
    test_the_number_of_an_arrow_touches_no_border(drawn[0])
    test_arrows_join_the_two_blocks_of_their_flows(scene, drawn[0])


def test_a_way_without_deployments_of_its_own_stays_with_real_time(
    shipped_scene: Callable[[str], Scene],
) -> None:
    """The arrow to the deployments behind the model's name is not that of real time alone."""
    scene = _with_deployments_of_ways(shipped_scene, {"queue"})
    assert ("balancer", "by-model") in _ends(scene, Way.REQUESTS)
    assert "by-way" not in {end for _, end in _ends(scene, Way.NEAR_REAL_TIME)}
    words = " ".join(_words(scene).split())
    assert "call the model at the same address as applications, without" in words
    assert "with the capacity that is free" not in words
    alone = _with_deployments_of_ways(shipped_scene, set())
    assert ("balancer", "frontends") in _ends(alone, Way.REQUESTS)


def test_spot_says_what_replaces_it(changed: ChangedScene) -> None:
    def spot(*, fallback: bool) -> str:
        purchase = {"spot": {"onDemandFallback": fallback}}
        return _words(changed(lambda spec: spec["pools"][0].update(purchase=purchase)))

    assert "Spot or on demand, 2 of 2 nodes" in spot(fallback=True)
    assert "Spot, 2 of 2 nodes" in spot(fallback=False)


def test_a_long_name_wraps_and_has_its_whole_as_title(changed: ChangedScene) -> None:
    name = "a-model-name-of-as-many-as-forty-letters"
    scene = changed(lambda spec: spec["models"][0].update(name=name))
    title = [text for text in _texts(draw(scene)[0]) if text.whole == name and text.bold]
    assert "".join(text.text for text in title).startswith(name)
    assert not any("…" in text.text for text in title)


def test_the_way_from_the_internet_ends_at_the_nodes(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec)
    canvas, _ = draw(scene)
    gateway, private = canvas.anchors["gateway"], canvas.anchors["private"]
    arrows = [shape for shape in canvas.shapes if isinstance(shape, Arrow)]
    assert any(arrow.start[1] == gateway.y and arrow.end[1] == private.bottom for arrow in arrows)


def test_fifty_pools_are_a_grid(changed: ChangedScene) -> None:
    def many(spec: dict[str, Any]) -> None:
        pool, model = spec["pools"][0], spec["models"][0]
        spec["pools"] = [{**pool, "name": f"p{number}"} for number in range(50)]
        [main] = model["deployments"]
        workers = main["aggregated"]
        spec["models"] = [
            {
                **model,
                "name": f"m{number}",
                "deployments": [{"name": "main", "aggregated": {**workers, "pool": f"p{number}"}}],
            }
            for number in range(50)
        ]

    canvas, height = draw(changed(many))
    assert height < 4 * WIDTH
    words = set(_all_words(canvas).splitlines())
    assert {f"p{number}" for number in range(50)} <= words
    test_no_two_texts_overlap(canvas)


def test_a_platform_on_neuron_shows_its_scheduler_and_where_compiled_programs_are(
    shipped_scene: Callable[[str], Scene],
) -> None:
    words = " ".join(_words(shipped_scene("trn2")).split())
    for shown in (
        "Neuron scheduler",
        "Compiled programs",
        "others load the result from S3",
        "behind the load balancer",
    ):
        assert shown in words
    assert "Frontends and routers" not in words
    assert "Neuron" not in _words(shipped_scene("inf2")).split("Pools")[0], "its workers have whole nodes"


def test_a_platform_with_routers_names_them(scene: Scene, canvas: Canvas) -> None:
    assert ("Frontends and routers" in _all_words(canvas)) == scene.has_routers


def test_a_png_is_the_picture_with_its_texts(monkeypatch: pytest.MonkeyPatch, changed: ChangedScene) -> None:
    """resvg leaves texts out, without an error, where it finds no font: this turns red without a check."""
    scene = changed(lambda spec: spec)
    try:
        document = png(picture(scene.blueprint, scene.plan))
    except UserError as error:
        pytest.skip(str(error))  # a machine without fonts
    assert document[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(document[16:20]) == 2 * WIDTH
    # Which fonts stand in for a missing one depends on the machine.
    without_fonts = partial(resvg_py.svg_to_bytes, skip_system_fonts=True)
    monkeypatch.setattr(resvg_py, "svg_to_bytes", without_fonts)
    with pytest.raises(
        UserError, match=r"needs one of these fonts on this machine: Helvetica, .*; install one, such"
    ):
        png(picture(scene.blueprint, scene.plan))
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(UserError, match="needs the Python package resvg-py, which is not installed"):
        png("")
