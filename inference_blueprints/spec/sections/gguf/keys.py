"""Weights as one file of GGUF."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import StringConstraints

from inference_blueprints.spec import formats
from inference_blueprints.spec.section import Form, Section
from inference_catalog.gguf_types import gguf_types

if TYPE_CHECKING:
    GgufType = str
else:
    # The catalogue's data names the types once, with their sizes.
    GgufType = Literal[gguf_types()]
GgufFile = Annotated[str, StringConstraints(max_length=255), Form(formats.GGUF_FILE)]


class Gguf(Section):
    """One file of the repository, in the format of llama.cpp. Requires `catalog`."""

    file: GgufFile
    """Path of the file in the repository, such as `Qwen3-4B-Q4_K_M.gguf`."""
    type: GgufType
    """Type of its weights, from which their size is computed. It is a part of the file's usual name. `MXFP4`
    is for models that are published in this type."""
