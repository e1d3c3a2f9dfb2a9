"""Images in requests: what engines are told of them, and what they take of the memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]

QWEN = {"huggingFace": "Qwen/Qwen3-VL-8B-Instruct"}
GEMMA = {"huggingFace": "google/gemma-3-12b-it"}
HOSTS = ["images.example.com", "files.example.com"]
MEDIA = {"imagesPerRequest": 4, "tokensPerImage": 1024, "allowedDomains": HOSTS}
#: Of 64 tokens, the least of Qwen3-VL's, and of 1024: its image processor reads none of them alone.
PIXELS = {"min_pixels": 65536, "max_pixels": 1024 * 32 * 32}
#: What fetches images from the hosts that are named and no others.
READERS: dict[str, dict[str, Any]] = {
    "vllm": {"stack": {"llmD": {}}},
    "sglang": {"engine": {"sglang": {}}},
}
#: Pools on which a worker has two devices.
PAIR = {"instance_types": ["g6e.12xlarge"], "aggregated": {"tensorParallelSize": 2}}


def worker(blueprint: Blueprint) -> Process:
    return build_plan(blueprint).models[0].deployments[0].workers[0]


def after(process: Process, flag: str) -> list[str]:
    """Return the words that follow a flag; none when it is not given."""
    words = list(process.arguments)
    if flag not in words:
        return []
    rest = words[words.index(flag) + 1 :]
    end = next((index for index, word in enumerate(rest) if word.startswith("--")), len(rest))
    return rest[:end]


def test_vllm_is_told_how_many_images_how_large_and_whence(make_blueprint: Make) -> None:
    process = worker(make_blueprint(weights=QWEN, media=MEDIA, **READERS["vllm"]))
    assert after(process, "--allowed-media-domains") == HOSTS
    assert json.loads(after(process, "--limit-mm-per-prompt")[0]) == {"image": 4, "video": 0}
    assert json.loads(after(process, "--mm-processor-kwargs")[0]) == PIXELS
    assert "--language-model-only" not in process.arguments


def test_vllm_follows_no_redirect_to_a_host_that_is_not_allowed(make_blueprint: Make) -> None:
    """It holds the first address against the list, not those that it is sent on to (vLLM 0.31.0)."""
    reader = worker(make_blueprint(weights=QWEN, media=MEDIA, **READERS["vllm"]))
    assert reader.environment["VLLM_MEDIA_URL_ALLOW_REDIRECTS"] == "0"


def test_sglang_is_told_how_many_images_how_large_and_whence(make_blueprint: Make) -> None:
    process = worker(make_blueprint(weights=QWEN, media=MEDIA, **READERS["sglang"]))
    assert after(process, "--allowed-media-domains") == HOSTS
    limits = json.loads(after(process, "--limit-mm-data-per-request")[0])
    assert limits == {"image": 4, "video": 0, "audio": 0}
    assert json.loads(after(process, "--mm-process-config")[0]) == {"image": PIXELS}
    assert "--enable-multimodal" in process.arguments


@pytest.mark.parametrize("engine", READERS)
def test_without_a_host_images_come_within_requests_alone(engine: str, make_blueprint: Make) -> None:
    """No domain at all would be every domain to both engines."""
    media = {"imagesPerRequest": 1, "tokensPerImage": 256}
    process = worker(make_blueprint(weights=QWEN, media=media, **READERS[engine]))
    assert after(process, "--allowed-media-domains") == ["media.invalid"]


@pytest.mark.parametrize(
    ("engine", "flag"), [("vllm", "--mm-encoder-tp-mode"), ("sglang", "--mm-enable-dp-encoder")]
)
def test_devices_of_a_worker_encode_whole_images_where_the_model_can(
    engine: str, flag: str, make_blueprint: Make
) -> None:
    """One device has nothing to share, and of Gemma 3 engines split the layers."""
    pair = worker(make_blueprint(weights=QWEN, media=MEDIA, **READERS[engine], **PAIR))
    alone = worker(make_blueprint(weights=QWEN, media=MEDIA, **READERS[engine]))
    fixed = {**MEDIA, "tokensPerImage": 256}
    gemma = worker(make_blueprint(weights=GEMMA, media=fixed, **READERS[engine], **PAIR))
    assert flag in pair.arguments
    assert flag not in alone.arguments
    assert flag not in gemma.arguments
    assert not {"--mm-processor-kwargs", "--mm-process-config"} & set(gemma.arguments)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrtLlm"])
def test_without_media_a_vision_model_reads_text_alone(engine: str, make_blueprint: Make) -> None:
    process = worker(make_blueprint(weights=QWEN, engine={engine: {}}))
    assert not {"--enable-multimodal", "--modality", "--limit-mm-per-prompt"} & set(process.arguments)
    if engine == "sglang":  # it has no switch that does not concern which weights it loads
        assert json.loads(after(process, "--limit-mm-data-per-request")[0])["image"] == 0
    assert ("--language-model-only" in process.arguments) == (engine == "vllm")
    plain = worker(make_blueprint(engine={engine: {}}))
    assert not {"--language-model-only", "--allowed-media-domains"} & set(plain.arguments)


@pytest.mark.parametrize("engine", READERS)
@pytest.mark.parametrize("media", [None, MEDIA])
def test_code_that_comes_with_weights_stays_off(
    engine: str, media: dict[str, Any] | None, make_blueprint: Make
) -> None:
    section = {"media": media} if media else {}
    process = worker(make_blueprint(weights=QWEN, **section, **READERS[engine]))
    assert "--trust-remote-code" not in process.arguments
    reader = {**READERS[engine], "engine": {engine: {"args": {"trust-remote-code": True}}}}
    [finding] = [
        each
        for each in serving_findings(make_blueprint(weights=QWEN, **section, **reader))
        if "args" in each.path
    ]
    assert finding.path[-1] == "trust-remote-code"
    assert finding.severity == "error"


@pytest.mark.parametrize("engine", READERS)
@pytest.mark.parametrize(
    ("weights", "shape"), [(QWEN, {}), (QWEN, PAIR), (GEMMA, PAIR)], ids=["alone", "by-image", "by-layer"]
)
def test_what_reading_images_takes_is_missing_from_the_cache(
    engine: str, weights: dict[str, str], shape: dict[str, Any], make_blueprint: Make
) -> None:
    media = {"imagesPerRequest": 1, "tokensPerImage": 256}
    text, images = (
        resolve(make_blueprint(weights=weights, **section, **READERS[engine], **shape), 0, 0)[0]
        for section in ({}, {"media": media})
    )
    before, with_images = worker_memory(text), worker_memory(images)
    vision = catalog.model(weights["huggingFace"]).vision
    assert vision is not None
    whole = weights is QWEN and shape is PAIR
    assert with_images.weights_bytes - before.weights_bytes == (vision.weight_bytes // 2 if whole else 0)
    step = worker_sizing(images).max_num_batched_tokens
    embeddings = 2 * step * vision.embedding_size
    encoding = with_images.activation_bytes - before.activation_bytes
    devices = images.tensor_parallel_size
    patches = step * vision.patches_per_token / devices
    assert encoding == pytest.approx(embeddings + 20 * patches * vision.hidden_size, abs=1)
    taken = before.kv_cache_bytes - with_images.kv_cache_bytes
    assert taken == encoding + with_images.weights_bytes - before.weights_bytes
    assert with_images.kv_tokens == with_images.kv_cache_bytes // with_images.kv_bytes_per_token
    assert with_images.total_bytes == before.total_bytes


def test_the_first_stage_of_layers_has_all_of_the_tower(make_blueprint: Make) -> None:
    stages = {"tensorParallelSize": 1, "pipelineParallelSize": 2}
    two = {"instance_types": ["g6e.12xlarge"], "aggregated": stages}
    media = {"imagesPerRequest": 1, "tokensPerImage": 256}
    text, images = (
        worker_memory(resolve(make_blueprint(weights=QWEN, **section, **READERS["vllm"], **two), 0, 0)[0])
        for section in ({}, {"media": media})
    )
    model = catalog.model(QWEN["huggingFace"])
    vision = model.vision
    assert vision is not None
    assert images.weights_bytes == text.weights_bytes
    embedding = 2 * model.vocabulary_size * model.hidden_size
    layers = model.weight_bytes - vision.weight_bytes - embedding - model.output_bytes
    assert text.weights_bytes == pytest.approx(vision.weight_bytes + embedding + layers / 2, rel=1e-4)


def test_an_image_larger_than_a_step_is_encoded_whole(make_blueprint: Make) -> None:
    """vLLM's budget is that of the largest image, and one device has all of it."""
    small, large = (
        worker_memory(
            resolve(
                make_blueprint(
                    weights=QWEN,
                    media={"imagesPerRequest": 1, "tokensPerImage": tokens},
                    **READERS["vllm"],
                    **PAIR,
                ),
                0,
                0,
            )[0]
        ).activation_bytes
        for tokens in (4096, 8192)
    )
    vision = catalog.model(QWEN["huggingFace"]).vision
    assert vision is not None
    more = 2 * 4096 * (vision.embedding_size + 10 * vision.patches_per_token * vision.hidden_size)
    assert large - small == more


def test_a_request_full_of_images_leaves_room_for_its_answer(make_blueprint: Make) -> None:
    """The longest request has 4 * (3000 + 200) tokens, rounded up to 13312, of which an answer has 200."""
    maximum, too_many = (
        list(
            serving_findings(
                make_blueprint(
                    weights=QWEN,
                    media={"imagesPerRequest": images, "tokensPerImage": 1024},
                    **READERS["vllm"],
                )
            )
        )
        for images in (12, 13)
    )
    assert maximum == []
    [finding] = too_many
    assert finding.path == ("spec", "models", 0, "media", "imagesPerRequest")
    assert "13312 in total" in finding.message


@pytest.mark.parametrize("engine", READERS)
def test_what_is_said_of_images_are_flags_of_the_release(engine: str, make_blueprint: Make) -> None:
    reader, text = (
        worker(make_blueprint(weights=QWEN, **section, **READERS[engine], **PAIR))
        for section in ({"media": MEDIA}, {})
    )
    said = {word for word in reader.arguments if word.startswith("--")} - set(text.arguments)
    assert said
    for word in said:
        flag = catalog.engine(engine).flag(word)
        assert flag is not None
        assert flag.takes_value == bool(after(reader, word))
