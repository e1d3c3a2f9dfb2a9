"""Turns type errors into messages: what was found, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic_core import ErrorDetails

from inference_blueprints.spec import formats
from inference_blueprints.spec.document import Node
from inference_blueprints.spec.scalars import AmbiguousScalarError, resolve
from inference_blueprints.spec.structure import key_at, keys, places_of, section_at
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
    return "is missing" + (f": {key.description.split('. ')[0].removesuffix('.')}" if key else "")


def _unknown(_node: Node, path: Path, _detail: ErrorDetails) -> str:
    name = str(path[-1])
    section = section_at(path[:-1])
    names = list(keys(section)) if section else []
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
    return f"got {_got(node)}, expected {formats.DESCRIPTIONS[detail['ctx']['pattern']]}"


def _bound(words: str, limit: str) -> _Describe:
    def describe(node: Node, _path: Path, detail: ErrorDetails) -> str:
        return f"got {_got(node)}, {words} {_number(detail['ctx'][limit])}"

    return describe


def _length(words: str, limit: str) -> _Describe:
    def describe(_node: Node, _path: Path, detail: ErrorDetails) -> str:
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


_MESSAGES: Mapping[str, _Describe] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "string_type": _text,
    "int_type": _whole_number,
    "float_type": _wrong_kind("a number"),
    "bool_type": _wrong_kind("true or false"),
    "list_type": _wrong_kind("a list"),
    "dict_type": _wrong_kind("a mapping"),
    "model_type": _wrong_kind("a mapping"),
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
