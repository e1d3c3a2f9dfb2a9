"""Writes a value into a blueprint's text and leaves everything else as it is, comments too."""

from __future__ import annotations

import copy
from typing import Any

import yaml

from inference_blueprints.errors import UserError
from inference_blueprints.spec import composer


def with_snapshot(text: str, file: str, pool: str, snapshot_id: str) -> str:
    """Return a blueprint's text with the id of a pool's snapshot.

    Parameters
    ----------
    text
        A blueprint that the loader accepted, in which the pool asks for a snapshot.
    file
        Its name in messages.
    pool
        Name of the pool.
    snapshot_id
        Id of the snapshot.

    Raises
    ------
    UserError
        If the place cannot be changed alone, as where an alias stands for it.
    """
    start, end, words = _change(text, pool, snapshot_id)
    changed = text[:start] + words + text[end:]
    if _value(changed, file) != _expected(text, file, pool, snapshot_id):
        raise UserError(
            f"{file}: is written in a way that is not changed here; write `id: {snapshot_id}` to the "
            f"ebsSnapshot of pool '{pool}' by hand"
        )
    return changed


def _change(text: str, pool: str, snapshot_id: str) -> tuple[int, int, str]:
    """Return which part of the text gives way to which words: the id, or the whole of an empty mapping."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pools = _child(_child(root, "spec"), "pools")
    [item] = [each for each in pools.value if _child(each, "name").value == pool]
    section = _child(_child(item, "imageAcceleration"), "ebsSnapshot")
    if not section.value:
        return section.start_mark.index, section.end_mark.index, f"{{id: {snapshot_id}}}"
    named = _child(section, "id")
    return named.start_mark.index, named.end_mark.index, snapshot_id


def _child(mapping: Any, key: str) -> Any:
    """Return the node below a key; the loader has seen that it is there."""
    [node] = [value for name, value in mapping.value if name.value == key]
    return node


def _expected(text: str, file: str, pool: str, snapshot_id: str) -> Any:
    """Return the document as it has to be read afterwards."""
    document = copy.deepcopy(_value(text, file))
    for each in document["spec"]["pools"]:
        if each["name"] == pool:
            each["imageAcceleration"] = {"ebsSnapshot": {"id": snapshot_id}}
    return document


def _value(text: str, file: str) -> Any:
    return composer.parse(text, file).root.value
