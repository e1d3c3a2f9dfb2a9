"""Counts the projections from an encoder of images to a language model (``models/*.py`` of vLLM 0.31.0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from inference_catalog.configurations.config_fields import Architecture, ConfigFields
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class ProjectorSizes:
    """Sizes on both sides of the projections."""

    whole: ConfigFields
    """The whole file."""
    vision: ConfigFields
    """The section of the encoder."""
    width: int
    """Size of the vector of a patch."""
    merge: int
    """Side of the square of patches that become one token."""
    output: int
    """Size of the vectors that leave the projections."""

    @property
    def merged(self) -> int:
        """Values of the patches of a token."""
        return self.width * self.merge**2


@dataclass(frozen=True, slots=True)
class Projector:
    """The projections."""

    parameters: int
    whole: int
    """Those of them that every device holds whole."""


def read_projector(sizes: ProjectorSizes, architecture: Architecture) -> Projector:
    """Count the projections of a class.

    Parameters
    ----------
    sizes
        Sizes on both sides.
    architecture
        The class.
    """
    kind = architecture.projector
    parameters = _PROJECTORS[kind](sizes)
    if architecture.whole_projector:
        return Projector(parameters, parameters)
    convolution = sizes.merged * sizes.output
    whole = {"glm": convolution, "chatglm": convolution + sizes.output**2}  # the rest is divided
    return Projector(parameters, whole.get(kind, 0))


def _merger(sizes: ProjectorSizes) -> int:
    return sizes.merged**2 + sizes.merged * sizes.output


def _pixtral(sizes: ProjectorSizes) -> int:
    return sizes.merged * sizes.width + sizes.width * sizes.output + sizes.output**2


def _llama4(sizes: ProjectorSizes) -> int:
    first = sizes.vision.number("projector_input_dim", default=4096)
    last = sizes.vision.number("projector_output_dim", default=4096)
    inner = sizes.vision.number("intermediate_size")  # as many values as the merged patches have
    return inner * first + first * last + last * sizes.output


def _minimax(sizes: ProjectorSizes) -> int:
    output = sizes.output
    inner = sizes.vision.number("projection_dim", default=output)
    return sizes.width * inner + inner * output + output * sizes.merge**2 * output + output**2


def _glm(sizes: ProjectorSizes, section: ConfigFields) -> int:
    """Count a convolution, a projection and a gated network."""
    inner = section.number("intermediate_size")
    return sizes.merged * sizes.output + sizes.output**2 + 3 * sizes.output * inner


def _resampler(sizes: ProjectorSizes) -> int:
    """Count attention of learnt queries to the patches, and a projection."""
    queries = sizes.whole.number("query_num")
    return sizes.width * sizes.output + 5 * sizes.output**2 + queries * sizes.output


def _ovis(sizes: ProjectorSizes) -> int:
    """Count the layer that chooses from a table of visual words, and the table."""
    return sizes.whole.number("visual_vocab_size") * (sizes.merged + sizes.output)


def _molmo(sizes: ProjectorSizes) -> int:
    """Count attention that pools the vectors of two layers of the encoder, and a gated network."""
    inner = sizes.whole.number("intermediate_size") // 2
    return 7 * sizes.width**2 + 2 * sizes.width * inner + inner * sizes.output


#: Parameters, by ``Architecture.projector``.
_PROJECTORS: Mapping[str, Callable[[ProjectorSizes], int]] = MappingProxyType(
    {
        "merger": _merger,
        "mlp": lambda sizes: sizes.merged * sizes.output + sizes.output**2,
        "merged": lambda sizes: sizes.merged * sizes.output,
        "pixtral": _pixtral,
        "llama4": _llama4,
        "minimax": _minimax,
        "linear": lambda sizes: sizes.width * sizes.output,
        "glm": lambda sizes: _glm(sizes, sizes.vision),
        "chatglm": lambda sizes: _glm(sizes, sizes.whole),
        "resampler": _resampler,
        "ovis": _ovis,
        "molmo": _molmo,
    }
)
