"""Rules on the source and the catalogue entry of weights."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.sections.environment.network import in_wrong_region, is_in_wrong_region
from inference_blueprints.spec.types import Spec, Weights
from inference_blueprints.spec.wording import Path, quote, suggestion
from inference_contracts.errors import Finding

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
    """Warn if the names of a repository and of its entry state different generations or sizes.

    A generation may have other layers: Qwen3.5 has linear attention, Qwen3 has none. Then memory, speed and
    prices would be those of another model, and nothing else would say so.
    """
    for path, weights in _each(spec):
        entry, repository = weights.catalog, weights.hugging_face
        if (
            entry is None
            or repository is None
            or entry not in weights.entries
            or repository in weights.entries
        ):
            continue
        named, meant = _named_traits(repository, entry), _named_traits(entry, entry)
        for trait, text in meant.items():
            if trait in named and named[trait] != text:
                message = (
                    f"got {quote(entry)} for {quote(repository)}, whose name states the {trait} "
                    f"{named[trait]}, not {text}: memory, speed and prices are those of the entry, and "
                    f"layers of another {trait} may differ; name its own entry, or make one from its "
                    "config.json with `blueprints models add`, which refuses classes that it does not count"
                )
                yield Finding((*path, "catalog"), message, "warning")
                break


_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bm]")
#: Also Gemma 3n and GLM-4v, whose layers are not those of Gemma 3 and GLM-4.
_GENERATION = re.compile(r"[vkrm]?\d{1,2}(?:\.\d+)?[nv]?")


def _named_traits(repository: str, entry: str) -> dict[str, str]:
    """Return generation and size as the name of a repository states them, if it has the entry's family."""
    words = [re.split(r"[-_]", each.rpartition("/")[2].casefold()) for each in (repository, entry)]
    family = re.sub(r"[\d.]+$", "", words[1][0])
    place = next((at for at, each in enumerate(words[0]) if re.sub(r"[\d.]+$", "", each) == family), None)
    if place is None:
        return {}
    own, *after = words[0][place:]
    found = {}
    attached = own.removeprefix(family)
    generation = attached or next(iter(after[:1]), "")
    if _GENERATION.fullmatch(generation):
        found["generation"] = generation
    sizes = [each for each in after if _SIZE.fullmatch(each)]
    return found | ({"size": sizes[0]} if sizes else {})


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
