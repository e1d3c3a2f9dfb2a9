"""Changes one value in a blueprint's text and nothing else; comments stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from inference_blueprints.spec import composer
from inference_blueprints.spec.document import Document
from inference_blueprints.spec.wording import Path, quote
from inference_contracts.errors import UserError

_Value = str | Mapping[str, str]

KUBERNETES_VERSION_PATH: Path = ("spec", "cluster", "eks", "version")


def with_kubernetes_version(text: str, document: Document, version: str) -> str:
    """Return a blueprint's text with another Kubernetes version.

    text: The text of a file that names a version.
    document: The same file, parsed.
    version: Version, such as ``1.36``.
    Raises UserError if the version cannot be changed on its own, for example because it is an alias of
        another value.
    """
    remedy = f"write {quote(version)} yourself, and upgrade without --to"
    return _with_value(text, document, KUBERNETES_VERSION_PATH, version, remedy)


def with_platform_name(text: str, file: str, name: str) -> str:
    """Return a blueprint's text with another ``metadata.name``.

    text: The text of a valid blueprint.
    file: Its name in messages.
    Raises UserError if the name cannot be changed on its own, for example because it is an alias of another
        value.
    """
    remedy = f"write `name: {name}` into metadata by hand"
    return _with_value(text, composer.parse(text, file), ("metadata", "name"), name, remedy)


def with_snapshot(text: str, file: str, pool: str, snapshot_id: str) -> str:
    """Return a blueprint's text with the id of the image snapshot of a pool.

    text: The text of a valid blueprint in which the pool has an ``ebsSnapshot``.
    Raises UserError if the id cannot be changed on its own, for example because the section is an alias of
        another value.
    """
    document = composer.parse(text, file)
    [index] = [i for i, each in enumerate(document.value(("spec", "pools"))) if each["name"] == pool]
    path: Path = ("spec", "pools", index, "imageAcceleration", "ebsSnapshot")
    remedy = f"write `id: {snapshot_id}` into the ebsSnapshot of pool {quote(pool)} by hand"
    if document.value(path):
        return _with_value(text, document, (*path, "id"), snapshot_id, remedy)
    return _with_value(text, document, path, {"id": snapshot_id}, remedy)


def _with_value(text: str, document: Document, path: Path, value: _Value, remedy: str) -> str:
    """Return the text with another value at a path that has a value; quotes stay."""
    node = _node(yaml.compose(text, Loader=yaml.SafeLoader), path)
    start, end = node.start_mark.index, node.end_mark.index
    style = node.style if isinstance(node, yaml.ScalarNode) and node.style in ("'", '"') else ""
    changed = f"{text[:start]}{_yaml(value, style)}{text[end:]}"
    is_anchored = text[start] in "&!"
    expected = _replaced(document.root.value, path, value)
    if is_anchored or composer.parse(changed, document.file).root.value != expected:
        message = f"this value is written in a way that cannot be changed automatically; {remedy}"
        raise UserError(str(document.problem(path, message)))
    return changed


def _node(root: Any, path: Path) -> Any:
    """Return PyYAML's node at a path; if a key is given twice, the first counts, as in `composer`."""
    node = root
    for part in path:
        if isinstance(part, int):
            node = node.value[part]
        else:
            node = next(child for key, child in node.value if key.value == part)
    return node


def _yaml(value: _Value, style: str) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, str):
        return f"{style}{value}{style}"
    return f"{{{', '.join(f'{key}: {text}' for key, text in value.items())}}}"


def _replaced(whole: Any, path: Path, value: Any) -> Any:
    """Return a document's value with another one at a path."""
    if not path:
        return value
    first, *rest = path
    if isinstance(whole, list):
        return [_replaced(each, tuple(rest), value) if i == first else each for i, each in enumerate(whole)]
    return {**whole, first: _replaced(whole[first], tuple(rest), value)}
