"""Rules on the source and the catalogue entry of weights."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.sections.environment.network import in_wrong_region, is_in_wrong_region
from inference_blueprints.spec.types import Spec, Weights
from inference_blueprints.spec.wording import Path, quote, suggestion
from inference_catalog.model import Model
from inference_contracts.errors import Finding
from inference_contracts.number_text import number

_ENTRY_IN_CATALOGUE = (
    "set 'catalog' to an entry of the same shape, or make one from the model's config.json with "
    "`blueprints models add`"
)


@rule
def one_source(spec: Spec) -> Iterator[Finding]:
    """Check that weights have exactly one source."""
    for path, weights in _each(spec):
        given = [key for key, value in (("huggingFace", weights.hugging_face), ("s3", weights.s3)) if value]
        if len(given) != 1:
            got = " and ".join(quote(key) for key in given) or "neither"
            yield Finding(path, f"got {got}, expected exactly one of 'huggingFace', 's3'")


@rule
def hub_keys_go_with_the_hub(spec: Spec) -> Iterator[Finding]:
    """Check that a revision, a token and a mirror are given only with the Hub."""
    for path, weights in _each(spec):
        for key, value in (
            ("revision", weights.revision),
            ("tokenSecretArn", weights.token_secret_arn),
            ("mirror", weights.mirror),
        ):
            if value is not None and weights.hugging_face is None:
                yield Finding((*path, key), "is allowed only with 'huggingFace'; remove it")


@rule
def shape_is_known(spec: Spec) -> Iterator[Finding]:
    """Check that the model, from whose layers and heads everything is sized, is in the catalogue."""
    for path, weights in _each(spec):
        known = weights.entries
        repository, entry = weights.hugging_face, weights.catalog
        if (entry or repository) in weights.drafts:
            message = (
                f"got {quote(entry or repository)}, a draft, which only guesses for another model; set that "
                "model, and the draft as 'speculation.eagle.huggingFace'"
            )
            yield Finding((*path, "catalog" if entry else "huggingFace"), message)
        elif entry is not None:
            yield from _entry_findings((*path, "catalog"), weights)
        elif repository is not None and repository not in known:
            meant = suggestion(repository, known)
            message = f"got {quote(repository)}, not in the catalogue; {_ENTRY_IN_CATALOGUE}{meant}"
            yield Finding((*path, "huggingFace"), message)
        elif repository is None and weights.s3 is not None:
            yield Finding(
                (*path, "catalog"), f"is missing, so the shape of the model is unknown; {_ENTRY_IN_CATALOGUE}"
            )


@rule
def gated_model_has_a_token(spec: Spec) -> Iterator[Finding]:
    """Check that a gated model comes with the token of an account that accepted its licence."""
    for path, weights in _each(spec):
        entry = weights.entries.get(weights.hugging_face or "")
        if entry and entry.gated and weights.token_secret_arn is None:
            message = (
                f"is missing: {quote(entry.name)} is gated ({entry.licence}); accept its licence on the Hub "
                "and set the ARN of the secret with your token"
            )
            yield Finding((*path, "tokenSecretArn"), message)


@rule
def type_is_of_a_quantised_model(spec: Spec) -> Iterator[Finding]:
    """Check that a type of the weights goes with the entry of the model with 16 bits."""
    for path, weights in _each(spec):
        if weights.type is None:
            continue
        entry = weights.entries.get(weights.catalog or "")
        if weights.catalog is None:
            message = (
                f"got {quote(weights.type)} without 'catalog'; set 'catalog' to the entry of the same model "
                "with 16 bits, or remove 'type'"
            )
            yield Finding((*path, "type"), message)
        elif entry and entry.weight_type != "bf16":
            message = (
                f"got {quote(weights.type)}, but the weights of {quote(entry.name)} are {entry.weight_type}; "
                "remove 'type', or name the entry of the model with 16 bits"
            )
            yield Finding((*path, "type"), message)


@rule
def secret_is_in_the_region(spec: Spec) -> Iterator[Finding]:
    """Check that the secret of the token is in the region of the platform."""
    for path, weights in _each(spec):
        arn = weights.token_secret_arn
        if arn and is_in_wrong_region(arn, spec.environment):
            yield Finding((*path, "tokenSecretArn"), in_wrong_region("secret", arn, spec.environment.region))


@rule
def mirror_is_of_a_commit(spec: Spec) -> Iterator[Finding]:
    """Check that a mirror has a commit as revision, because it is copied once."""
    for path, weights in _each(spec):
        if weights.hugging_face and weights.mirror is not None and not _is_commit(weights.revision):
            got = (
                f"got {quote(weights.revision)}, 'mirror' needs"
                if weights.revision
                else "is missing: 'mirror' needs"
            )
            page = f"https://huggingface.co/{weights.hugging_face}/commits"
            yield Finding((*path, "revision"), f"{got} a commit of 40 hexadecimal digits; see {page}")


@rule
def revision_is_pinned(spec: Spec) -> Iterator[Finding]:
    """Check that a revision is set, so that all nodes serve the same weights."""
    for path, weights in _each(spec):
        if weights.hugging_face and weights.revision is None and weights.mirror is None:
            message = (
                f"{quote(weights.hugging_face)} has no revision, so workers serve the newest main "
                "branch; set 'revision'"
            )
            yield Finding(path, message, "warning")


@rule
def entry_is_of_the_same_model(spec: Spec) -> Iterator[Finding]:
    """Warn if the names of a repository and of its entry state different generations, sizes or variants.

    A generation may have other layers: Qwen3.5 has linear attention, Qwen3 has none. What was distilled from
    DeepSeek-R1 has the layers of Qwen or Llama. Then memory, speed and prices would be those of another
    model, and nothing else would say so.
    """
    for path, weights in _each(spec):
        entry, repository = weights.entries.get(weights.catalog or ""), weights.hugging_face
        if entry is None or repository is None or repository in weights.entries:
            continue
        for trait, what in _differences(repository, entry):
            message = (
                f"got {quote(entry.name)} for {quote(repository)}, whose name states {what}: memory, speed "
                f"and prices are those of the entry, and layers of another {trait} may differ; name its own "
                "entry, or make one from its config.json with `blueprints models add`, which refuses classes "
                "that it does not count"
            )
            yield Finding((*path, "catalog"), message, "warning")
            break


_SIZE = re.compile(r"(?:(\d+)x)?(\d+(?:\.\d+)?)([bmt])")
_ACTIVE_SIZE = re.compile(r"a(\d+(?:\.\d+)?)b")
_BILLION = {"m": 0.001, "b": 1.0, "t": 1000.0}
#: Names round parameters: Qwen3-30B-A3B has 30.53 billion, 3.35 of them active. Pruned models differ more.
_ROUNDED = 1.15
#: Also Gemma 3n and GLM-4v, whose layers are not those of Gemma 3 and GLM-4.
_GENERATION = re.compile(r"[vkrm]?\d{1,2}(?:\.\d+)?[nv]?")
#: Words of names for models of other layers: DeepSeek-R1-Distill-Qwen-32B is a Qwen2.5, GLM-4.5-Air has 106
#: of 355 billion parameters, Qwen3-VL adds an encoder of images (cards of the models on the Hub).
_VARIANTS = (
    *(
        "air",
        "flash",
        "large",
        "lite",
        "maverick",
        "medium",
        "micro",
        "mini",
        "nano",
        "scout",
        "small",
        "tiny",
    ),
    *("tiny", "audio", "omni", "vl", "linear", "next", "distill", "distilled", "pruned", "reap"),
)


def _differences(repository: str, entry: Model) -> Iterator[tuple[str, str]]:
    """Yield the traits in which the name of a repository contradicts an entry, and what it states."""
    family = re.sub(r"[\d.]+$", "", _words(entry.name)[0])
    named, meant = _after_family(repository, family), _after_family(entry.name, family)
    generations = _generation(named, family), _generation(meant, family)
    if all(generations) and generations[0] != generations[1]:
        yield "generation", f"the generation {generations[0]}, not {generations[1]}"
    for word in named[1:]:
        if word in _VARIANTS and word not in meant:
            yield "variant", f"{quote(word)}, and that of the entry does not"
    # A name without the family, such as ads-ranker-4b, states a size all the same.
    size = next(filter(None, map(_billions, named[1:] or _words(repository))), None)
    own = next(filter(None, map(_billions, meant)), None) or entry.parameters_billion
    if size and not 1 / _ROUNDED <= size / own <= _ROUNDED:
        yield "size", f"the size {_text(size)}, not {_text(own)}"
    active = next(filter(None, map(_ACTIVE_SIZE.fullmatch, named[1:])), None)
    if active and not 1 / _ROUNDED <= float(active[1]) / entry.active_parameters_billion <= _ROUNDED:
        yield "size", f"{active[1]}b active parameters, not {number(entry.active_parameters_billion)}b"


def _words(name: str) -> list[str]:
    """Return the words of the name of a repository, without its owner. Llama-3_3 is Llama-3.3."""
    own = re.sub(r"(?<=\d)_(?=\d)", ".", name.rpartition("/")[2].casefold())
    return re.split(r"[-_]", own)


def _after_family(name: str, family: str) -> list[str]:
    """Return the words of a name from its last mention of a family on; none without it."""
    words = _words(name)
    places = [at for at, each in enumerate(words) if re.sub(r"[\d.]+$", "", each) == family]
    return words[places[-1] :] if places else []


def _generation(words: list[str], family: str) -> str:
    """Return the generation that words state, attached to the family or after it; empty without one."""
    if not words:
        return ""
    generation = words[0].removeprefix(family) or next(iter(words[1:2]), "")
    return generation if _GENERATION.fullmatch(generation) else ""


def _billions(word: str) -> float | None:
    """Return the parameters that a word such as 8x7b states, in billions; None for other words."""
    size = _SIZE.fullmatch(word)
    return float(size[1] or 1) * float(size[2]) * _BILLION[size[3]] if size else None


def _text(billions: float) -> str:
    return f"{number(billions, 5)}b" if billions >= 1 else f"{number(billions * 1000)}m"


def _is_commit(revision: str | None) -> bool:
    """Return whether a revision is a full commit id."""
    # `str` raises for an invalid value; `re` would raise a TypeError.
    return revision is not None and re.fullmatch("[0-9a-f]{40}", str(revision)) is not None


def _each(spec: Spec) -> Iterator[tuple[Path, Weights]]:
    """Yield each model's weights with their place."""
    for index, model in usable(spec.models):
        yield ("spec", "models", index, "weights"), model.weights


def _entry_findings(path: Path, weights: Weights) -> Iterator[Finding]:
    """Check a catalogue entry that is given in addition to the source of the weights."""
    known, entry, repository = weights.entries, weights.catalog or "", weights.hugging_face
    if entry not in known:
        yield Finding(path, f"got {quote(entry)}, not in the catalogue{suggestion(entry, known)}")
    elif repository in known and repository != entry:
        yield Finding(
            path, f"got {quote(entry)}, but {quote(repository)} is an entry itself; remove 'catalog'"
        )
