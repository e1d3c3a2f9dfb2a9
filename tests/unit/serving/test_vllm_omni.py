"""vLLM-Omni: arguments exist in the release, memory is counted by parts, and no speed is guessed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.plan.plan_tables import plan_notes, plan_tables
from inference_blueprints.report.plan.sections.tokens import TOKEN_PRICES
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.report.tables import TextTable
from inference_blueprints.resources import blueprints_directory, root
from inference_blueprints.serving.command_line import flag_values
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.estimates.memory_estimate import COLLECTIVE_BYTES, RESERVED_BYTES
from inference_blueprints.serving.performance import image_speed
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.serving.stacks.serving_stack import own_server_flags
from inference_blueprints.serving.types import Process
from inference_contracts.errors import BlueprintError

SHIPPED = (blueprints_directory() / "image-generation.yaml").read_text(encoding="utf-8")
COMMIT = "f332072aa78be7aecdf3ee76d5c247082da564a6"
TEXT_ENCODER, TRANSFORMER, VAE = 8_044_982_000, 12_309_845_444, 167_666_902


def edited(*replacements: tuple[str, str]) -> str:
    text = SHIPPED
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return text


def worker(text: str) -> Process:
    return build_plan(parse_blueprint(text, "test.yaml").blueprint).models[0].deployments[0].workers[0]


def resolved(text: str) -> ResolvedWorkers:
    return resolve(parse_blueprint(text, "test.yaml").blueprint, 0, 0)[0]


def refused(text: str) -> str:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text, "test.yaml")
    return str(caught.value)


def table(text: str, title: str) -> TextTable:
    blueprint = parse_blueprint(text, "test.yaml").blueprint
    summary = summarise(blueprint, build_plan(blueprint))
    return next(each for each in plan_tables(summary) if each.title == title)


TWO_DEVICES = (
    ("instanceTypes: [g7e.2xlarge]", "instanceTypes: [g7e.12xlarge]"),
    ("tensorParallelSize: 1", "tensorParallelSize: 2"),
)


class TestArguments:
    @pytest.mark.parametrize("text", [SHIPPED, edited(*TWO_DEVICES)], ids=["one device", "two devices"])
    def test_every_argument_is_a_flag_of_the_release(self, text: str) -> None:
        flags = own_server_flags(catalog.engine("vllmOmni"))
        _, *words = worker(text).arguments
        while words:
            flag = flags[words.pop(0)]
            if flag.takes_value:
                assert not words.pop(0).startswith("--"), flag

    def test_the_flags_are_of_the_release_that_the_image_has(self) -> None:
        engine = catalog.engine("vllmOmni")
        assert engine.version == f"v{engine.engine_version}"
        assert f"vllm-omni {engine.engine_version} " in engine.source
        # The SHA-256 of the wheel is that of the index.
        assert "141cb0c7b9c07970e5c92a99aab9696e81682dbfa3d2bfcde359c3c1533385f4" in engine.source

    def test_the_server_is_started_for_images(self) -> None:
        process = worker(SHIPPED)
        assert command_behind_filter(process) == ("vllm", "serve")
        assert process.arguments[:2] == ("/models/Tongyi-MAI/Z-Image-Turbo", "--omni")
        assert process.image == "docker.io/vllm/vllm-omni:v0.30.0"
        assert process.probes.startup.path == "/health"
        assert [(port.name, port.number) for port in process.ports] == [("http", 8000)]

    def test_its_image_gets_a_name_of_the_user(self) -> None:
        """As vLLM's own, on which it is built: PyTorch asks for a name that the image does not list."""
        assert {"USER", "HOME"} <= worker(SHIPPED).environment.keys()

    def test_larger_images_than_those_of_the_workload_are_refused(self) -> None:
        values = flag_values(worker(edited(("1024x1024, steps: 9", "1280x720, steps: 30"))).arguments)
        assert values["max-generated-image-size"] == str(1280 * 720)

    def test_defaults_that_the_engine_does_not_read_are_not_set(self) -> None:
        """Parameters of a request for images from text replace all of ``--default-sampling-params``."""
        assert "--default-sampling-params" not in worker(SHIPPED).arguments
        assert (
            "name steps and guidance" in catalog.engine("vllmOmni").owned_arguments["default-sampling-params"]
        )

    def test_the_weights_are_of_the_commit(self) -> None:
        """The engine would download the main branch of a repository, whatever revision is set."""
        cache = worker(SHIPPED).node_cache
        assert cache is not None
        assert cache.weights == f"Tongyi-MAI--Z-Image-Turbo@{COMMIT}"
        assert "downloads the newest main branch" in refused(edited((COMMIT, "main")))

    def test_a_worker_ends_after_its_longest_request(self) -> None:
        """Nothing states that the stages outlive SIGTERM, so the signal comes after the answer."""
        few, many = worker(SHIPPED), worker(edited(("perRequest: 1", "perRequest: 4")))
        assert few.pre_stop_seconds >= 30
        assert many.pre_stop_seconds > few.pre_stop_seconds
        assert many.termination_grace_seconds > many.pre_stop_seconds

    def test_what_vllm_serve_refuses_with_omni_is_refused_here(self) -> None:
        owned = catalog.engine("vllmOmni").owned_arguments
        for name in (
            "data-parallel-size",
            "data-parallel-size-local",
            "data-parallel-address",
            "data-parallel-rpc-port",
            "data-parallel-start-rank",
            "data-parallel-backend",
            "enable-expert-parallel",
        ):
            assert "refuses it" in owned[name]

    def test_the_request_of_the_page_is_one_that_the_blueprint_serves(self) -> None:
        page = (root() / "docs/image-generation.md").read_text(encoding="utf-8")
        body = json.loads(page.partition("```json\n")[2].partition("\n```")[0])
        images = resolved(SHIPPED).traffic.means.images
        assert images is not None
        assert set(body) == {"model", "prompt", "size", "n", "num_inference_steps", "guidance_scale"}
        assert body["num_inference_steps"] == images.steps
        assert body["model"] == resolved(SHIPPED).model.name
        assert (body["size"], body["n"]) == (images.size, images.per_request)


class TestMemory:
    def test_weights_are_those_of_the_parts_in_16_bits(self) -> None:
        memory = worker_memory(resolved(SHIPPED))
        assert memory.weights_bytes == TEXT_ENCODER + TRANSFORMER + VAE
        assert memory.reserved_bytes == RESERVED_BYTES

    def test_only_the_transformer_is_split(self) -> None:
        memory = worker_memory(resolved(edited(*TWO_DEVICES)))
        assert memory.weights_bytes == TEXT_ENCODER + TRANSFORMER // 2 + VAE
        assert memory.reserved_bytes == RESERVED_BYTES + COLLECTIVE_BYTES

    def test_one_image_needs_two_maps_of_the_decoder(self) -> None:
        memory = worker_memory(resolved(SHIPPED))
        assert memory.activation_bytes == 2 * 2 * 1024 * 1024 * 256
        published = 21.66e9
        assert memory.weights_bytes + memory.activation_bytes == pytest.approx(published, rel=0.01)

    def test_several_images_need_the_transformer_s_tokens(self) -> None:
        memory = worker_memory(resolved(edited(("perRequest: 1", "perRequest: 10"))))
        assert memory.activation_bytes == 2 * 2 * 10 * (64 * 64 + 512) * 3840 * 10

    def test_an_image_of_no_named_size_fits_too(self) -> None:
        """A request without a size gets 1024 x 1024, which the server compares with no limit."""
        small, shipped = (
            worker_memory(resolved(edited(("1024x1024", "256x256")))),
            worker_memory(resolved(SHIPPED)),
        )
        assert small == shipped
        large = worker_memory(resolved(edited(("1024x1024", "2048x1024"))))
        assert large.activation_bytes == 2 * shipped.activation_bytes

    def test_steps_need_no_memory(self) -> None:
        assert worker_memory(resolved(edited(("steps: 9", "steps: 50")))) == worker_memory(resolved(SHIPPED))

    def test_a_device_that_is_too_small_is_refused_with_a_larger_one(self) -> None:
        message = refused(edited(("g7e.2xlarge", "g6.2xlarge")))
        assert "Tongyi-MAI/Z-Image-Turbo does not fit: each l4 needs 19.1 GiB for weights" in message
        assert "the cheapest types on which it fits: " in message

    def test_an_image_has_at_most_the_sides_that_the_transformer_has_positions_for(self) -> None:
        parse_blueprint(edited(("1024x1024", "8192x1024")), "a")
        assert "positions for 8192 pixels" in refused(edited(("1024x1024", "8208x1024")))

    def test_two_small_devices_hold_what_one_does_not(self) -> None:
        message = refused(edited(("g7e.2xlarge", "g6.12xlarge")))
        assert message.endswith("set tensorParallelSize: 2")
        parse_blueprint(
            edited(("g7e.2xlarge", "g6.12xlarge"), ("tensorParallelSize: 1", "tensorParallelSize: 2")), "a"
        )

    def test_the_transformer_is_split_over_what_divides_its_sizes(self) -> None:
        [shape] = catalog.pipelines().values()
        assert shape.pipeline is not None
        assert shape.pipeline.tensor_parallel_sizes == (1, 2)


class TestSpeed:
    def test_a_published_speed_prices_a_thousand_images(self) -> None:
        images = table(SHIPPED, "Images")
        [row] = images.rows
        speed = image_speed(resolved(SHIPPED))
        hourly = catalog.instance_type("g7e.2xlarge").usd_per_hour
        assert speed is not None
        assert hourly is not None
        assert row[-1] == f"{hourly / 3600 / speed.images_per_second * 1000:.2f}"
        assert "published, not measured here" in images.notes[0]

    @pytest.mark.parametrize(
        "change",
        [
            ("steps: 9", "steps: 10"),
            ("1024x1024", "1024x1040"),
            ("g7e.2xlarge", "g6e.2xlarge"),
        ],
        ids=["other steps", "another size", "another device"],
    )
    def test_other_images_have_no_speed(self, change: tuple[str, str]) -> None:
        images = table(edited(change), "Images")
        assert images.rows[0][-2:] == ("no data", "no data")
        assert "nobody published a speed" in images.notes[0]

    def test_another_release_has_no_speed(self) -> None:
        workers = resolved(SHIPPED)
        assert image_speed(replace(workers, engine=replace(workers.engine, engine_version="0.32.0"))) is None

    def test_workers_below_the_peak_are_a_warning(self) -> None:
        slow = edited(("peakRequestsPerSecond: 1", "peakRequestsPerSecond: 1.5"))
        warnings = [
            [str(each) for each in parse_blueprint(text, "a").warnings if "replicas" in str(each)]
            for text in (SHIPPED, slow)
        ]
        assert warnings[0] == []
        [warning] = warnings[1]
        assert "one worker makes 0.615" in warning
        assert "set replicas: 3" in warning


class TestPlan:
    def test_there_is_no_kv_cache_and_no_price_of_tokens(self) -> None:
        blueprint = parse_blueprint(SHIPPED, "a").blueprint
        summary = summarise(blueprint, build_plan(blueprint))
        [row] = table(SHIPPED, "Memory per device").rows
        assert row[-5:] == ("-", "-", "-", "512", "1")
        assert summary[TOKEN_PRICES] == ()
        assert not [note for note in plan_notes(summary) if "token" in note]

    def test_workers_scale_by_waiting_requests(self) -> None:
        process = worker(
            edited(("replicas: 2", "replicas: {min: 1, max: 2}, scaledBy: {load: {}}"))
            + "  observability: {}\n"
        )
        assert process.scaling is not None
        selector = '{release="z-image-turbo-main",role="worker"}'
        assert {each.name: each.query for each in process.scaling.triggers} == {
            "queue-length": f"sum(vllm_omni:num_requests_waiting{selector})",
            "requests-in-flight": f"sum(vllm_omni:num_requests_running{selector} + "
            f"vllm_omni:num_requests_waiting{selector})",
        }


@pytest.mark.parametrize("size", ["8208x1024", "1024x8208"])
def test_an_image_is_neither_wider_nor_higher_than_the_model_has_positions(size: str) -> None:
    """512 tokens of 16 pixels a side. Red if only one side is compared."""
    assert "set at most '8192x8192'" in refused(edited(("size: 1024x1024", f"size: {size}")))
    assert parse_blueprint(edited(("size: 1024x1024", "size: 8192x1024")), "test.yaml").blueprint
