"""Rules on images in requests: who reads them, and where they may come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inference_blueprints import catalog
from inference_blueprints.errors import Finding
from inference_blueprints.spec.types import Media, Model
from inference_blueprints.spec.wording import Path, listing, quote

#: Engines by the stack whose workers fetch images themselves, from any public host
#: (``common/multimodal/image_loader.py`` of Dynamo 1.6). The others keep to ``allowed_media_domains``
#: (``srt/utils/common.py`` of SGLang 0.5.21, ``multimodal/media/connector.py`` of vLLM 0.31.0).
FETCHING_FROM_ANYWHERE: Mapping[str, tuple[str, ...]] = MappingProxyType({"dynamo": ("vllm", "tensorrtLlm")})


def model_reads_images(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that a model which is to read images can."""
    for path, model, _ in _with_media(models):
        entry = _entry(model)
        if entry and entry.vision is None:
            reading = [name for name, each in catalog.models().items() if each.vision]
            message = (
                f"got images for {entry.name}, which reads text alone; remove 'media', or serve one of "
                f"{listing(reading)}"
            )
            yield Finding(path, message)


def engine_fetches_from_allowed_hosts(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that engine and stack keep to the hosts that are named."""
    for path, model, _ in _with_media(models):
        stack, engine = model.stack.chosen, model.engine.chosen
        if engine in FETCHING_FROM_ANYWHERE.get(stack, ()):
            message = (
                f"got images with the engine {quote(engine)} on {quote(stack)}, whose workers fetch what a "
                "request names from any public host; set 'engine: {sglang: {}}', or 'stack: {llmD: {}}' with "
                "the engine vllm"
            )
            yield Finding(path, message)


def images_go_to_one_worker(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that prompts with images are not computed apart from their answers."""
    for path, model, _ in _with_media(models):
        for index, deployment in enumerate(model.deployments):
            if deployment.disaggregated:
                message = (
                    "got 'disaggregated', but both workers would fetch and encode a request's images; make "
                    "it 'aggregated', or remove 'media'"
                )
                yield Finding((*path[:-1], "deployments", index, "disaggregated"), message)


def image_has_the_model_s_tokens(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check the tokens of an image where a model scales all images to one size."""
    for path, model, media in _with_media(models):
        entry = _entry(model)
        fixed = entry.vision.tokens_per_image if entry and entry.vision else 0
        if entry and fixed and media.tokens_per_image != fixed:
            message = (
                f"got {media.tokens_per_image}, but {entry.name} makes {fixed} of every image; set {fixed}"
            )
            yield Finding((*path, "tokensPerImage"), message)


def hosts_are_named(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that hosts are names and not addresses, which would reach what is inside the network."""
    for path, _, media in _with_media(models):
        for index, domain in enumerate(media.allowed_domains):
            if domain.rpartition(".")[2].isdigit():
                message = f"got {quote(domain)}, an address; name the host, such as images.example.com"
                yield Finding((*path, "allowedDomains", index), message)


def _with_media(models: Mapping[int, Model]) -> Iterator[tuple[Path, Model, Media]]:
    """Yield the models that are to read images, with the place of that section."""
    for index, model in models.items():
        if model.media:
            yield ("spec", "models", index, "media"), model, model.media


def _entry(model: Model) -> catalog.Model | None:
    return catalog.models().get(model.weights.catalog or model.weights.hugging_face or "")
