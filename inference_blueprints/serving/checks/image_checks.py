"""Checks the images that a blueprint names for workers and frontends."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec import types as spec
from inference_blueprints.spec.wording import listing, quote, suggestion
from inference_catalog.catalogue import shipped
from inference_contracts.errors import Finding


def image_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check the images of a model.

    Parameters
    ----------
    model_path
        Path of the model in the blueprint.

    Yields
    ------
    Finding
        An error for a release that is not recorded, and for a tag from which Dynamo's operator would read
        another release; a warning for each image without a digest.
    """
    name, image = model.engine.chosen, model.engine.section.image
    path = (*model_path, "engine", name, "image")
    releases = tuple(shipped().engine_releases[name])
    if image and image.release not in releases:
        message = (
            f"got {quote(image.release)}, whose flags are not recorded"
            f"{suggestion(image.release, releases)}; known are {listing(releases)}"
        )
        yield Finding((*path, "release"), message)
        return
    release = image.release if image else None
    for text, place in _images(model, model_path):
        tag = text.split("@")[0].rpartition(":")[2]
        # Dynamo's operator reads the release from the tag.
        if model.stack.dynamo and release and not tag.startswith(release):
            message = f"got the tag {quote(tag)}, it must begin with the release {quote(release)}"
            yield Finding(place, message)
        elif "@" not in text:
            message = (
                f"got {quote(text)} without a digest, so its content can change; add '@sha256:…', which the "
                "registry shows"
            )
            yield Finding(place, message, severity="warning")


def _images(
    model: spec.Model, model_path: tuple[str | int, ...]
) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Yield each image with its path."""
    image = model.engine.section.image
    if image:
        yield image.name, (*model_path, "engine", model.engine.chosen, "image", "name")
    if model.frontend and model.frontend.image:
        yield model.frontend.image, (*model_path, "frontend", "image")
