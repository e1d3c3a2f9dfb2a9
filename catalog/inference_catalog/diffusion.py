"""Pipelines that make images from text: a text encoder, a transformer that removes noise, and a decoder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from inference_catalog.entry_builder import build_entry
from inference_contracts.records import dataclass

_FILE = Path(__file__).resolve().parent / "data" / "image_speeds.json"
#: Bytes per weight on a device: the engine loads every part in 16 bits (``OmniDiffusionConfig.dtype`` in
#: ``vllm_omni/diffusion/data.py`` of vllm-omni 0.30.0).
LOADED_BYTES = 2

PartName = Literal["text_encoder", "transformer", "vae"]


@dataclass(frozen=True, slots=True)
class PipelinePart:
    """A part of a pipeline, which ``model_index.json`` names, with weights of its own."""

    architecture: str
    """Its class in ``model_index.json``."""
    file_bytes: int
    """Size of its weights in the repository."""
    stored_bytes: int
    """Bytes per weight in the repository."""

    @property
    def loaded_bytes(self) -> int:
        """Size of its weights on a device, in 16 bits."""
        return self.file_bytes * LOADED_BYTES // self.stored_bytes


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a pipeline's configurations say beyond the sizes of its transformer."""

    text_encoder: PipelinePart
    transformer: PipelinePart
    vae: PipelinePart
    """`text_encoder`, `transformer`, `vae`: Its parts with weights."""
    prompt_tokens: int
    """Tokens of a prompt that are read; the rest is cut off."""
    pixels_per_token: int
    """Width and height in pixels of the square that is one token of the transformer."""
    side_tokens: int
    """Most tokens along the width and along the height, for which the transformer has positions."""
    decoder_channels: int
    """Channels of the largest feature map of the decoder, which has the pixels of the image."""
    default_pixels: int
    """Pixels of an image whose request names no size."""
    split_sizes: tuple[int, ...]
    """Sizes that tensor parallelism must divide."""

    @property
    def tensor_parallel_sizes(self) -> tuple[int, ...]:
        """Numbers of devices over which the transformer can be split."""
        common = math.gcd(*self.split_sizes)
        return tuple(size for size in range(1, common + 1) if common % size == 0)

    def image_tokens(self, pixels: int) -> int:
        """Return the transformer's tokens of an image."""
        return pixels // self.pixels_per_token**2


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSpeed:
    """Images per second of one worker, as others published them. It is not a measurement of this library."""

    model: str
    """Hugging Face id."""
    engine: str
    """The blueprint's key of the engine."""
    engine_version: str
    """Its release."""
    accelerator: str
    """Kind of device by the catalogue's name."""
    tensor_parallel_size: int
    """The number of devices of the worker."""
    size: str
    steps: int
    """`size`, `steps`: Width and height of the images in pixels, and steps."""
    images_per_second: float
    """Images that one worker finished per second."""
    conditions: str
    """What else the figure depends on."""
    date: str
    source: str
    """`date`, `source`: When and where it was published."""


@cache
def image_speeds() -> tuple[ImageSpeed, ...]:
    """Return every published speed of images in the order of the file."""
    document = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(build_entry(ImageSpeed, each, _FILE) for each in document["speeds"])


def pipeline_of(values: Mapping[str, Any], path: Path) -> Pipeline:
    """Return the pipeline of an entry, with its parts.

    Parameters
    ----------
    values
        The fields as the data file has them.
    path
        File of the entry, for messages.
    """
    parts = {
        name: build_entry(PipelinePart, values[name], path) for name in get_args(PartName) if name in values
    }
    return build_entry(Pipeline, {**values, **parts}, path)
