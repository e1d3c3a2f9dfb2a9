"""Rules on images in requests."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Media, Model, Spec
from inference_blueprints.spec.wording import Path, listing, quote
from inference_contracts.errors import Finding


@rule
def model_reads_images(spec: Spec) -> Iterator[Finding]:
    """Check that a model with images in requests can read images."""
    for path, model, _ in _with_media(spec):
        entry = _entry(model)
        if entry and not (entry.vision and entry.vision.limits_images):
            known = catalog.models().items()
            reading = [name for name, each in known if each.vision and each.vision.limits_images]
            why = "which reads only text" if entry.vision is None else "whose largest image is not known here"
            message = (
                f"got images for {entry.name}, {why}; remove 'media', or serve one of {listing(reading)}"
            )
            yield Finding(path, message)


@rule
def images_go_to_one_worker(spec: Spec) -> Iterator[Finding]:
    """Check that a model with images is not disaggregated."""
    for path, model, _ in _with_media(spec):
        for index, deployment in usable(model.deployments):
            if deployment.disaggregated:
                message = (
                    "got 'disaggregated', but both workers would fetch and encode a request's images; make "
                    "it 'aggregated', or remove 'media'"
                )
                yield Finding((*path[:-1], "deployments", index, "disaggregated"), message)


@rule
def image_has_the_model_s_tokens(spec: Spec) -> Iterator[Finding]:
    """Check that the tokens per image are right if the model scales all images to one size."""
    for path, model, media in _with_media(spec):
        entry = _entry(model)
        fixed = entry.vision.tokens_per_image if entry and entry.vision else 0
        if entry and fixed and media.tokens_per_image != fixed:
            message = (
                f"got {media.tokens_per_image}, but {entry.name} uses {fixed} tokens for every image; "
                f"set {fixed}"
            )
            yield Finding((*path, "tokensPerImage"), message)


@rule
def hosts_are_named(spec: Spec) -> Iterator[Finding]:
    """Check that hosts are names and not IP addresses, which could reach the internal network."""
    for path, _, media in _with_media(spec):
        for index, domain in usable(media.allowed_domains):
            if domain.rpartition(".")[2].isdigit():
                message = f"got {quote(domain)}, an IP address; name the host, such as images.example.com"
                yield Finding((*path, "allowedDomains", index), message)


def _with_media(spec: Spec) -> Iterator[tuple[Path, Model, Media]]:
    """Yield the models with images in requests, with the place of the section."""
    for index, model in usable(spec.models):
        if model.media:
            yield ("spec", "models", index, "media"), model, model.media


def _entry(model: Model) -> catalog.Model | None:
    return model.weights.entry
