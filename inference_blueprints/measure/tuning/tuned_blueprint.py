"""Writes a configuration into a blueprint file and leaves everything else unchanged, including comments."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.spec import composer
from inference_blueprints.spec.lock.adjacent_files import AdjacentFiles
from inference_blueprints.spec.types import Blueprint, Deployment
from inference_contracts.errors import UserError

_COMMENT = re.compile(r"(?<!\S)#[^\r\n]*")


class _Edit(NamedTuple):
    """A replacement for the text from index ``start`` up to, but not including, index ``end``."""

    start: int
    end: int
    replacement: str


def write_configuration(
    path: Path, tuned: Blueprint, model: str, deployment: Deployment, engine: str
) -> bool:
    """Write a model's deployment into its blueprint file, atomically.

    tuned: The blueprint when it was read, without its lock.
    engine: The engine that runs it, in the blueprint's word.
    Returns: Whether the file had to be changed.
    Raises BlueprintError if the file is invalid, or would be afterwards. The file is unchanged. Raises
        UserError if the file has changed meanwhile, uses YAML that cannot be edited here, or cannot be
        written.
    """
    try:
        text = path.read_bytes().decode()
        pins = AdjacentFiles(path).pins()
        if parse_blueprint(text, str(path), pins).written != tuned:
            raise UserError(
                f"{path}: the file changed during the search; nothing was written; run the command again"
            )
        changed = with_deployment(text, str(path), model, deployment, engine)
        parse_blueprint(changed, str(path), pins)
        if changed != text:
            _replace(path.resolve(), changed)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be written: {reason}; nothing was changed") from error
    return changed != text


def with_deployment(text: str, file: str, model: str, deployment: Deployment, engine: str) -> str:
    """Return a blueprint's text with one deployment in place of a model's own.

    text: A blueprint that the loader accepted.
    file: Its name in messages.
    Raises UserError if the deployment cannot be changed on its own, for example because it is a YAML alias.
    """
    item = _item(text, model)
    section = _section(deployment)
    edits = [
        *_engine_edits(item, engine, text),
        *_deployment_edits(_child(item, "deployments"), section, text),
    ]
    changed = text
    for edit in sorted(edits, reverse=True):
        changed = changed[: edit.start] + edit.replacement + changed[edit.end :]
    if _value(changed, file) != _expected(text, file, model, section, engine):
        raise UserError(
            f"{file}: this YAML cannot be edited automatically; set "
            f"`deployments: {_flow([section])}` for model '{model}' by hand"
        )
    return changed


def _deployment_edits(node: Any, section: dict[str, Any], text: str) -> Iterator[_Edit]:
    """Yield new values if the old deployment has the same keys, else a new list."""
    only = node.value[0] if len(node.value) == 1 else None
    if only is not None and _keys(only) == _value_keys(section):
        yield from _scalar_edits(only, section)
    else:
        end = _end(node)
        comments = _comments(text, node.start_mark.index, end)
        yield _Edit(node.start_mark.index, end, _list(node, section, comments, text))


def _scalar_edits(node: Any, value: Any) -> Iterator[_Edit]:
    """Yield an edit for each scalar below a mapping that changes."""
    for key, child in node.value:
        wanted = value[key.value]
        if isinstance(wanted, dict):
            yield from _scalar_edits(child, wanted)
        elif child.value != str(wanted):
            yield _Edit(child.start_mark.index, child.end_mark.index, _plain(wanted))


def _engine_edits(item: Any, engine: str, text: str) -> Iterator[_Edit]:
    """Yield an edit for the engine if it changes."""
    named = next((value for key, value in item.value if key.value == "engine"), None)
    value = f"{{{engine}: {{}}}}"
    if named is None and engine != _DEFAULT_ENGINE:
        key = next(key for key, _ in item.value if key.value == "deployments")
        between = ", " if item.flow_style else _newline(text) + " " * key.start_mark.column
        yield _Edit(key.start_mark.index, key.start_mark.index, f"engine: {value}{between}")
    elif named is not None and named.value[0][0].value != engine:
        yield _Edit(named.start_mark.index, _end(named), value)


_DEFAULT_ENGINE = "vllm"


def _list(node: Any, section: dict[str, Any], comments: list[str], text: str) -> str:
    """Return the list of one deployment in the style of the old one: on one line, or on several."""
    line = _newline(text) + " " * int(node.start_mark.column)
    above: str = "".join(comment + line for comment in comments)
    if node.flow_style:
        return above + _flow([section])
    topology = next(key for key in section if key != "name")
    roles = section[topology]
    if topology == "aggregated":
        body = [f"  {topology}: {_flow(roles)}"]
    else:
        body = [f"  {topology}:", *(f"    {role}: {_flow(workers)}" for role, workers in roles.items())]
    lines = [f"- name: {_plain(section['name'])}", *body]
    return above + line.join(lines)


def _flow(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _plain(value)


def _plain(value: str | int) -> str:
    """Write a number or a name, with quotes if YAML would read it as something else."""
    if isinstance(value, str) and yaml.safe_load(value) != value:
        return f'"{value}"'
    return str(value)


def _comments(text: str, start: int, end: int) -> list[str]:
    """Return the comments between two places: what stands between YAML's tokens is space and comments."""
    tokens = [token for token in yaml.scan(text) if start <= token.start_mark.index <= end]
    found, place = [], start
    for token in tokens:
        found += _COMMENT.findall(text[place : token.start_mark.index])
        place = max(place, token.end_mark.index)
    return found


def _end(node: Any) -> int:
    """Return the end of a node. A block node includes the comments after it, so its last part counts."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _item(text: str, model: str) -> Any:
    """Return the node of a model."""
    models = _child(_child(yaml.compose(text, Loader=yaml.SafeLoader), "spec"), "models")
    [item] = [each for each in models.value if _child(each, "name").value == model]
    return item


def _child(mapping: Any, key: str) -> Any:
    """Return the node below a key, which exists in a loaded blueprint."""
    [node] = [value for name, value in mapping.value if name.value == key]
    return node


def _keys(node: Any) -> Any:
    """Return the keys of a mapping, those below them too."""
    if not isinstance(node, yaml.MappingNode):
        return None
    return {key.value: _keys(child) for key, child in node.value}


def _value_keys(value: Any) -> Any:
    """Return the keys of a value, those below them too."""
    return {key: _value_keys(each) for key, each in value.items()} if isinstance(value, dict) else None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _section(deployment: Deployment) -> dict[str, Any]:
    """Return a deployment in the form of the file."""
    return deployment.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _expected(text: str, file: str, model: str, section: dict[str, Any], engine: str) -> Any:
    """Return the document that the changed text must have."""
    document = copy.deepcopy(_value(text, file))
    for each in document["spec"]["models"]:
        if each["name"] == model:
            each["deployments"] = [section]
            if engine not in each.get("engine", {_DEFAULT_ENGINE: {}}):
                each["engine"] = {engine: {}}
    return document


def _value(text: str, file: str) -> Any:
    return composer.parse(text, file).root.value


def _replace(path: Path, text: str) -> None:
    """Replace the file atomically, with the same permissions."""
    with NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}-", delete=False) as draft:
        draft.write(text.encode())
    try:
        shutil.copymode(path, draft.name)
        Path(draft.name).replace(path)
    except OSError:
        Path(draft.name).unlink()
        raise
