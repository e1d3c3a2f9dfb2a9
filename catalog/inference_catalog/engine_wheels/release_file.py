"""The file of one release of an engine: what its own server accepts, read from its wheel."""

from __future__ import annotations

import datetime
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from types import MappingProxyType

from inference_catalog.engine_wheels.environment_names import ENVIRONMENT_MODULES
from inference_catalog.engine_wheels.flag_definitions import (
    SGLANG_ARGUMENTS,
    VLLM_ARGUMENTS,
    Flags,
    sglang_flags,
    vllm_flags,
    vllm_server_flags,
    vllm_server_module,
)
from inference_catalog.engine_wheels.model_classes import sglang_model_classes, vllm_model_classes
from inference_catalog.engine_wheels.wheels import Wheel
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class EngineWheel:
    """How the wheels of an engine are read, and the image that its publisher builds of each release."""

    image: str
    image_source: str
    """`image`, `image_source`: Repository of the image, and where its publisher names it and its tags."""
    flags: Callable[[zipfile.ZipFile], Flags]
    server_flags: Callable[[zipfile.ZipFile], Flags]
    """`flags`, `server_flags`: Flags of the engine, and those that only its server has besides."""
    model_classes: Callable[[zipfile.ZipFile], tuple[str, ...]]
    modules: Callable[[zipfile.ZipFile], tuple[str, ...]]
    """Modules that define the flags."""


#: Engines whose releases can be recorded, by the blueprint's key, which is also the name of the package.
ENGINE_WHEELS: Mapping[str, EngineWheel] = MappingProxyType(
    {
        "vllm": EngineWheel(
            image="docker.io/vllm/vllm-openai",
            image_source="docs/deployment/docker.md of github.com/vllm-project/vllm: official image "
            "vllm/vllm-openai on Docker Hub, with the release after 'v' as tag",
            flags=vllm_flags,
            server_flags=vllm_server_flags,
            model_classes=vllm_model_classes,
            modules=lambda wheel: (VLLM_ARGUMENTS, vllm_server_module(wheel)),
        ),
        "sglang": EngineWheel(
            image="docker.io/lmsysorg/sglang",
            image_source="docs/get_started/install.md of github.com/sgl-project/sglang: image "
            "lmsysorg/sglang on Docker Hub, with the release after 'v' as tag",
            flags=sglang_flags,
            server_flags=lambda _: {},
            model_classes=sglang_model_classes,
            modules=lambda _: (SGLANG_ARGUMENTS,),
        ),
    }
)


_IMAGE = re.compile(r"(?P<repository>[^@]+):(?P<tag>[^/:@]+)(@(?P<digest>sha256:[0-9a-f]{64}))?")


def release_file(wheel: Wheel, *, image: str | None = None, digest: str | None = None) -> str:
    """Return the text of the file with what a release accepts.

    Parameters
    ----------
    wheel
        The release's wheel.
    image
        Image with its tag, and its digest if that is known. Without it, the publisher's.
    digest
        Digest of the image's manifest, if it is known.

    Raises
    ------
    UserError
        If the wheel is not that of an engine that can be recorded.
    """
    source = ENGINE_WHEELS.get(wheel.package)
    if source is None:
        allowed = " or ".join(ENGINE_WHEELS)
        raise UserError(f"got a wheel of {wheel.package!r}, the releases of {allowed} can be recorded")
    match = _IMAGE.fullmatch(image or f"{source.image}:v{wheel.release}")
    if match is None:
        raise UserError(f"got image {image!r}, must be one with its tag, and best with '@sha256:…'")
    try:
        flags, server_flags = source.flags(wheel.archive), source.server_flags(wheel.archive)
        classes = source.model_classes(wheel.archive)
        variables = ENVIRONMENT_MODULES[wheel.package].names(wheel.archive)
        modules = " and ".join(source.modules(wheel.archive))
    except (KeyError, SyntaxError) as error:
        raise UserError(
            f"the wheel of {wheel.package} {wheel.release} is not laid out as the releases known here: "
            f"{error}; use a release of this library that knows this one"
        ) from error
    head = {
        "name": wheel.package,
        "image": match["repository"],
        "version": wheel.release,
        "tag": match["tag"],
        "digest": match["digest"] or digest,
        "engine_version": wheel.release,
        "wheel": wheel.digest,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": f"{wheel.package} {wheel.release} ({modules} of its wheel)",
        "image_source": "given by the user" if image else source.image_source,
    }
    tables = {"flags": flags, "server_flags": server_flags}
    parts = [json.dumps(head, indent=2).removesuffix("\n}")]
    parts += [table_text(key, table) for key, table in tables.items() if table]
    parts.append(f'  "model_classes": {json.dumps(classes)}')
    parts.append(f'  "environment_names": {json.dumps(variables)}')
    return ",\n".join(parts) + "\n}\n"


def table_text(key: str, flags: Mapping[str, object]) -> str:
    """Return a table as JSON with a line per flag or reason.

    Parameters
    ----------
    key
        Name of the table.
    flags
        Its rows.
    """
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(flags[name])}" for name in sorted(flags))
    return f'  "{key}": {{\n{lines}\n  }}'
