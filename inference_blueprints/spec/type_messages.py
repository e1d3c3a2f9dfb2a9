"""Turns type errors into messages: what was found, what is allowed, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pydantic_core import ErrorDetails

from inference_blueprints.spec import formats
from inference_blueprints.spec.document import AmbiguousScalarError, Node, resolve
from inference_blueprints.spec.structure import is_choice, key_at, keys, places_of, section_at
from inference_blueprints.spec.types import Section
from inference_blueprints.spec.wording import Path, allowed, listing, quote, suggestion

_Describe = Callable[[Node, Path, ErrorDetails], str]


def message(node: Node, path: Path, detail: ErrorDetails) -> str:
    """Return the message of one of pydantic's errors.

    node: The node at the place of the error, or its closest ancestor.
    path: Place of the error.
    detail: Pydantic's description of the error.
    """
    return _MESSAGES.get(detail["type"], _other)(node, path, detail)


def is_about_the_key(detail: ErrorDetails) -> bool:
    """Return whether the key is at fault and not its value."""
    return detail["type"] == "extra_forbidden"


def _missing(_node: Node, path: Path, _detail: ErrorDetails) -> str:
    key = key_at(path)
    if key is None:
        return "is missing"
    needs = _needs(key.child, "each item" if key.is_list else "it")
    return f"is missing: {key.description.split('. ')[0].removesuffix('.')}{needs and f'; {needs}'}"


def _needs(section: type[Section] | None, who: str = "it") -> str:
    """Return which keys a section must have, or nothing if it needs none."""
    if section is None:
        return ""
    if is_choice(section):
        return f"{who} has exactly one of {listing(keys(section))}"
    required = [name for name, each in keys(section).items() if each.required]
    return f"{who} needs at least {listing(required)}" if required else ""


def _unknown(_node: Node, path: Path, _detail: ErrorDetails) -> str:
    name = str(path[-1])
    section = section_at(path[:-1])
    names = list(keys(section)) if section else []
    wish = _WISHES.get(name.casefold())
    if wish:
        return wish
    if not names:
        return "is an unknown key; this section has no keys, write {}"
    meant = suggestion(name, names)
    elsewhere = places_of(name) if not meant else []
    hint = f"; it belongs in {elsewhere[0] or 'the root'}" if elsewhere else ""
    return f"is an unknown key, {allowed('key', names)}{meant}{hint}"


def _wrong_kind(needed: str) -> _Describe:
    def describe(node: Node, _path: Path, _detail: ErrorDetails) -> str:
        return f"got {_got(node)}, expected {needed}{_remedy(node, needed)}"

    return describe


def _text(node: Node, path: Path, detail: ErrorDetails) -> str:
    """Return the message for a value that must be text; pydantic adds the kind to the place of a union."""
    needed = "text, a number, true or false" if len(detail["loc"]) > len(path) else "text"
    return _wrong_kind(needed)(node, path, detail)


def _whole_number(node: Node, path: Path, detail: ErrorDetails) -> str:
    """Return the message for a value that must be a whole number, or for one that may also be a mapping."""
    key = key_at(path)
    mapping = f" or a mapping of {listing(keys(key.child))}" if key and key.child else ""
    return _wrong_kind(f"a whole number{mapping}")(node, path, detail)


def _mapping(node: Node, path: Path, detail: ErrorDetails) -> str:
    """Return the message for a value that must be a section, with the keys that it needs."""
    section = section_at(path)
    needs = _needs(section)
    remedy = f"; {needs}" if needs else "; write {}" if section and node.value is True else ""
    return _wrong_kind("a mapping")(node, path, detail) + remedy


def _remedy(node: Node, needed: str) -> str:
    """Return what to write instead, if that is clear."""
    if needed == "text" and node.text is not None:
        reading = (
            ""
            if str(node.value) == node.text or isinstance(node.value, bool)
            else f", which YAML reads as {node.value}"
        )
        return f'{reading}; write "{node.text}" in quotes'
    if isinstance(node.value, str) and node.text is None and _is_other_than_text(node.value):
        return "; remove the quotes"
    if needed == "a list":
        return "; begin each item with `- `" if isinstance(node.value, dict) else f"; write [{_got(node)}]"
    if needed == "a mapping" and isinstance(node.value, list):
        return "; write `key: value` without `- `"
    return ""


def _is_other_than_text(text: str) -> bool:
    """Return whether a quoted text would be a number or truth value without its quotes."""
    try:
        return not isinstance(resolve(text), str)
    except AmbiguousScalarError:
        return False


def _literal(node: Node, path: Path, _detail: ErrorDetails) -> str:
    key = key_at(path)
    words = key.literals if key else ()
    return f"got {_got(node)}, {allowed('value', words)}{suggestion(str(node.value), words)}"


def _pattern(node: Node, _path: Path, detail: ErrorDetails) -> str:
    pattern = detail["ctx"]["pattern"]
    wrong = _wrong_character(str(detail["input"]), pattern)
    return f"got {_got(node)}{wrong}, expected {formats.DESCRIPTIONS[pattern]}"


def _wrong_character(text: str, pattern: str) -> str:
    """Return which character of a key in S3 is not accepted, as part of a message; empty if all are."""
    if pattern not in (formats.S3_PREFIX, formats.S3_FOLDER, formats.S3_OBJECT):
        return ""
    _, _, key = text.removeprefix("s3://").partition("/")
    allowed = pattern.rpartition("/[" if pattern == formats.S3_OBJECT else "/([")[2].partition("]")[0]
    wrong = next(iter(re.findall(f"[^{allowed}]", key)), "")
    return f" with the character {wrong!r}, which is not accepted here" if wrong else ""


def _bound(words: str, limit: str) -> _Describe:
    def describe(node: Node, _path: Path, detail: ErrorDetails) -> str:
        return f"got {_got(node)}, {words} {_number(detail['ctx'][limit])}"

    return describe


def _length(words: str, limit: str) -> _Describe:
    def describe(_node: Node, path: Path, detail: ErrorDetails) -> str:
        if path == _ZONES and detail["ctx"]["actual_length"] == 1:
            return _ONE_ZONE
        count = detail["ctx"]["actual_length"]
        got = "an empty list" if not count else f"{count} items" if count > 1 else "1 item"
        return f"got {got}, expected {words} {detail['ctx'][limit]}"

    return describe


def _one_of(_node: Node, path: Path, detail: ErrorDetails) -> str:
    section = section_at(path)
    names = list(keys(section)) if section else []
    given = detail["ctx"]["given"]
    got = " and ".join(quote(name) for name in given) or "none"
    return f"got {got}, expected exactly one of {listing(names)}"


def _other(node: Node, _path: Path, detail: ErrorDetails) -> str:
    """Return pydantic's message for errors without an entry here."""
    return f"got {_got(node)}: {detail['msg']}"


def _got(node: Node) -> str:
    """Return a value as written in the file."""
    return (
        quote(node.value)
        if node.text is None
        else quote(node.value)
        if isinstance(node.value, str)
        else node.text
    )


def _number(value: float) -> str:
    """Return a limit without a needless fraction."""
    return str(int(value)) if float(value).is_integer() else str(value)


def _not_yet(names: str, reason: str, instead: str) -> dict[str, str]:
    """Return the message for each name that people give to what a blueprint cannot say yet.

    names: Names with blanks between them.
    """
    message = f"cannot be said yet, because {reason}; remove it. {instead}"
    return {name.casefold(): message for name in names.split()}


def _objective(names: str, key: str) -> dict[str, str]:
    """Return the message for each name that people give to an objective, with blanks between the names."""
    message = f"is an unknown key; state percentiles of 50, 90, 95 and 99, such as `{key}: {{p95: …}}`"
    return {name.casefold(): message for name in names.split()}


_ZONES: Path = ("spec", "environment", "availabilityZones")
_ONE_ZONE = (
    "got 1 zone; a platform in one zone cannot be said yet, because load balancers and the EKS control plane "
    "need subnets in two. List two zones; nodes of a pool stay in one with its `availabilityZone`"
)
#: What people look for under many names, and no key says.
_WISHES: Mapping[str, str] = {
    **_not_yet(
        "kmsKey kmsKeyArn kmsKeyId kms encryptionKey encryptionKeyArn customerManagedKey",
        "each platform has a KMS key of its own, which its stacks create",
        "docs/infrastructure.md says what it encrypts",
    ),
    **_not_yet(
        "internet internetAccess internetEgress egress noInternet airGapped isolated",
        "nodes pull the images of controllers and engines from public registries",
        "With `network.existing`, traffic leaves by your own routes, for example through a firewall",
    ),
    **_not_yet(
        "registry registries imageRegistry imageRepository privateRegistry registryMirror mirrorRegistry ecr",
        "the images of the controllers come from their own registries",
        "Engines can have an image of yours: `engine: {vllm: {image: {name: …, release: …}}}`",
    ),
    **_not_yet(
        "permissionsBoundary permissionsBoundaryArn permissionBoundary",
        "the roles of the stacks have no permissions boundary",
        "A service control policy limits them without a change of the stacks",
    ),
    **_not_yet(
        "apiKey apiKeys authentication auth authorization oauth jwt",
        "the address of a model does not identify its callers",
        "Let a gateway of yours identify them; `network.sourceCidrs` can let only it in",
    ),
    **_not_yet(
        "rateLimit rateLimits quota quotas tokensPerMinute requestsPerMinute requestsAtOnce",
        "the address of a model does not tell callers apart",
        "Let a gateway of yours do it. Batch has `teams` with budgets",
    ),
    **_not_yet(
        "public publicEndpoint publicAccess internetFacing publicAddress",
        "models answer only inside the VPC and the networks that are connected to it",
        "Put an API gateway or a public load balancer of yours in front of them",
    ),
    **_not_yet(
        "lora loras loraAdapters loraModules adapter adapters",
        "the plan does not know the memory of adapters, nor where they are",
        "Serve merged weights as a model of their own: `weights: {s3: …, catalog: …}`",
    ),
    **_objective(
        "timeToFirstTokenP50Ms timeToFirstTokenP95Ms timeToFirstTokenP99Ms ttft ttftMs timeToFirstToken",
        "timeToFirstTokenMs",
    ),
    **_objective(
        "timePerOutputTokenP50Ms timePerOutputTokenP95Ms timePerOutputTokenP99Ms tpot tpotMs itl itlMs",
        "timePerOutputTokenMs",
    ),
    **_objective(
        "requestP50Ms requestP90Ms requestP95Ms requestP99Ms endToEndMs e2eMs",
        "requestMs",
    ),
    **_not_yet(
        "scaleToZero offHours officeHours sleep sleepSchedule",
        "a model without workers has nothing that holds a request until one starts",
        "Elastic replicas keep at least one: `replicas: {min: 1, max: …}` with `scaledBy`",
    ),
}
_MESSAGES: Mapping[str, _Describe] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "string_type": _text,
    "int_type": _whole_number,
    "float_type": _wrong_kind("a number"),
    "bool_type": _wrong_kind("true or false"),
    "list_type": _wrong_kind("a list"),
    "dict_type": _wrong_kind("a mapping"),
    "model_type": _mapping,
    "literal_error": _literal,
    "string_pattern_mismatch": _pattern,
    "greater_than": _bound("it must be above", "gt"),
    "greater_than_equal": _bound("it must be at least", "ge"),
    "less_than": _bound("it must be below", "lt"),
    "less_than_equal": _bound("it must be at most", "le"),
    "too_short": _length("at least", "min_length"),
    "too_long": _length("at most", "max_length"),
    "one_of": _one_of,
}
