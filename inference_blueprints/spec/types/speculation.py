"""Speculative decoding: cheap guesses of the next tokens, which the model checks in one step."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import Choice, HuggingFaceRepository, Revision, Section


class GuessedTokens(Section):
    """Number of guesses."""

    tokens: int = Field(default=3, ge=1, le=16)
    """Tokens that are guessed per step."""


class EagleDraft(GuessedTokens):
    """A small model that was trained to guess for this one."""

    hugging_face: HuggingFaceRepository
    """Repository of the draft on the Hugging Face Hub: a draft of the catalogue, or one that
    `blueprints models add` described. Each worker downloads it from there."""
    revision: Revision | None = None
    """Commit, branch or tag of the draft. With a commit, the draft never changes."""


class Speculation(Choice):
    """Speculative decoding. Its gain depends on the answers and is not predicted."""

    mtp: GuessedTokens | None = None
    """The model's own layers for multi-token prediction guess. For models that have them. vLLM and SGLang."""
    n_gram: GuessedTokens | None = None
    """Repetitions of text in the prompt are the guesses. It takes no device memory. vLLM."""
    eagle: EagleDraft | None = None
    """A draft model guesses: EAGLE or EAGLE-3, as its own configuration says. vLLM and SGLang."""

    @property
    def tokens(self) -> int:
        """Tokens that are guessed per step."""
        [guesses] = [each for each in (self.mtp, self.n_gram, self.eagle) if each is not None]
        return guesses.tokens
