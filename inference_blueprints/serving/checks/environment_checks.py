"""Checks the environment variables that a blueprint gives to workers and frontends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import inference_catalog as catalog
from inference_blueprints.serving.stacks.owned_environment import owner_reason
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.wording import quote, suggestion
from inference_contracts.errors import Finding

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# At the end of a name: VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD is none.
_SECRET_NAME = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|ACCESS_KEY(_ID)?|PRIVATE_KEY|AUTH)$",
    re.IGNORECASE,
)
# Tokens of Hugging Face, GitHub and OpenAI, AWS access keys and private keys.
_SECRET_VALUE = re.compile(
    r"(^hf_[A-Za-z0-9]{20,}$|^gh[pousr]_[A-Za-z0-9]{20,}|^sk-[A-Za-z0-9_-]{20,}$|^A(KIA|SIA)[0-9A-Z]{16}$"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----)"
)
_MAXIMUM_CHARACTERS = 4096


def environment_findings(
    model: spec.Model, engine: catalog.Engine, model_path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Check the variables of a model's workers and frontends.

    engine: Release of the model's engine.
    model_path: Path of the model in the blueprint.
    Yields: An error for each variable that the plan owns, that looks like a secret or that no process can
        have; a warning for each variable of the engine that its release does not define.
    """
    workers = model.engine.section.env
    path = (*model_path, "engine", model.engine.chosen, "env")
    yield from _wrong(workers, path, frontend=False)
    yield from _unknown(workers, engine, path)
    if model.frontend:
        yield from _wrong(model.frontend.env, (*model_path, "frontend", "env"), frontend=True)


def _wrong(
    environment: Mapping[str, str], path: tuple[str | int, ...], *, frontend: bool
) -> Iterator[Finding]:
    """Yield errors, at most one per variable."""
    for name, value in environment.items():
        reason = owner_reason(name, frontend=frontend)
        if not _NAME.fullmatch(name):
            message = (
                f"got {quote(name)}, allowed are up to 128 letters, digits and underscores, no digit first"
            )
        elif reason:
            message = f"the platform sets {quote(name)} itself; {reason}; remove it"
        elif _SECRET_NAME.search(name) or _SECRET_VALUE.search(value):
            message = (
                f"{quote(name)} looks like a secret, and whoever reads the template or the pod would read it"
                "; remove it. The token of the Hugging Face Hub is 'weights.tokenSecretArn'"
            )
        else:
            message = _value_problem(value) or ""
        if message:
            yield Finding((*path, name), message)


def _value_problem(value: str) -> str | None:
    """Return the problem of a value; None if it has none."""
    if len(value) > _MAXIMUM_CHARACTERS:
        return f"got {len(value)} characters, allowed are {_MAXIMUM_CHARACTERS}"
    if any(ord(character) < ord(" ") for character in value):
        return "got a line break or another control character, allowed is one line of text"
    if "$(" in value:
        return "got '$(', which Kubernetes would replace by another variable; write the value itself"
    return None


def _unknown(
    environment: Mapping[str, str], engine: catalog.Engine, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Yield a warning for each name with the engine's prefix that the engine does not define."""
    recorded = catalog.environment_names().get(engine.name)
    if recorded is None or recorded.release != engine.engine_version:
        return
    for name in environment:
        if name.startswith(recorded.prefix) and name not in recorded.names:
            message = (
                f"got {quote(name)}, which {engine.name} {recorded.release} does not define"
                f"{suggestion(name, recorded.names)}; without a program that reads it, it has no effect"
            )
            yield Finding((*path, name), message, severity="warning")
