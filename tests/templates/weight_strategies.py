"""Where the weights of generated models come from, and images of their engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import inference_catalog as catalog
from inference_catalog.catalogue import shipped

Document = dict[str, Any]
Draw = Callable[..., Any]

MIRROR = "registry.example.com"
COMMIT = "0a1b2c3d4e" * 4


def token(region: str, account: str) -> str:
    """Return the ARN of a secret with a token of the Hub."""
    return f"arn:aws:secretsmanager:{region}:{account}:secret:hub-AbCdEf"


def own_image(engine: str, accelerator: str = "") -> Document:
    """Return a copy of an engine's image, for an accelerator if it has several, in one's own registry."""
    # Of vLLM, Dynamo's: a release without it runs on some stacks alone.
    releases = [
        each
        for each in shipped().engine_releases[engine].values()
        if each.on_dynamo == catalog.engine(engine).on_dynamo
    ]
    release = next(each.version for each in releases if accelerator in each.accelerators or not accelerator)
    return {"name": f"{MIRROR}/runtime:{release}", "release": release}


@st.composite
def weights_of(draw: Draw, entry: str, region: str, account: str) -> Document:
    """Return where the weights come from: S3, or the Hub, copied first or not, with a token where gated."""
    if draw(st.booleans()):
        stored = {"s3": f"s3://acme-models/{entry}/", "catalog": entry}
        is_plain = catalog.models()[entry].weight_type == "bf16"
        types: list[Document] = [{}, {"type": "fp8"}] if is_plain else [{}]
        return {**stored, **draw(st.sampled_from(types))}
    weights: Document = draw(
        st.sampled_from(
            [
                {"huggingFace": entry},
                {"huggingFace": entry, "revision": "main"},
                {"huggingFace": entry, "revision": COMMIT},
                {"huggingFace": entry, "revision": COMMIT, "mirror": {}},
            ]
        )
    )
    if catalog.models()[entry].gated or draw(st.booleans()):
        weights = weights | {"tokenSecretArn": token(region, account)}
    return weights
