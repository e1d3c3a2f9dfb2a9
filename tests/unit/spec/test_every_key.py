"""A mistake at any key is reported at its place, whatever reads the key."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.spec.section import Section
from inference_blueprints.spec.structure import keys, section_at, walk
from inference_blueprints.spec.types import (
    Alarms,
    BatchWorkers,
    CapacityBlock,
    Chat,
    Cluster,
    Day,
    EcsCluster,
    ExpressKafka,
    Kafka,
    Model,
    Network,
    OldHostNames,
    StreamedRequests,
)
from inference_blueprints.spec.wording import path_text
from inference_contracts.errors import BlueprintError

TEXT = (Path(__file__).parent / "every_key.yaml").read_text(encoding="utf-8")
DOCUMENT = yaml.safe_load(TEXT)

#: Keys that a valid document cannot have beside the others, each with the reason.
LEFT_OUT: dict[tuple[type[Section], str], str] = {
    (Alarms, "topicArn"): "excludes emails",
    (Network, "cidr"): "excludes existing",
    (BatchWorkers, "eks"): "excludes ecs",
    (CapacityBlock, "tags"): "excludes id",
    (Cluster, "ecs"): "excludes eks",
    (Chat, "template"): "is a file",
    (Model, "publicName"): "excludes frontDoor",
    (Day, "rates"): "excludes hours",
    (StreamedRequests, "promptImages"): "the streaming job's model reads only text",
    **{(EcsCluster, key): "excludes eks" for key in keys(EcsCluster)},
    (Kafka, "express"): "excludes existing",
    (ExpressKafka, "brokers"): "excludes existing",
    (OldHostNames, "door"): "excludes models",
    (ExpressKafka, "instanceType"): "excludes existing",
}

#: Keys whose mappings hold any value.
FREE = ("examples", "jsonSchema", "keys")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value below one."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in pairs:
        yield (*path, key)
        yield from places(child, (*path, key))


def wrong_at(paths: Iterable[tuple[Any, ...]]) -> str:
    """Return the document's text with values of the wrong kind at some paths, none above another."""
    document = copy.deepcopy(DOCUMENT)
    for path in paths:
        holder = document
        for part in path[:-1]:
            holder = holder[part]
        # A range of replicas may also be a number.
        holder[path[-1]] = True if isinstance(holder[path[-1]], dict | list) else {"a": 1}
    return json.dumps(document)  # is YAML too, and written much faster


def problem_paths(text: str) -> set[str]:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text, "own.yaml")
    return {problem.path for problem in caught.value.problems}


def test_it_is_valid_and_has_every_key() -> None:
    parse_blueprint(TEXT, "every_key.yaml")
    given = {(section_at(path[:-1]), path[-1]) for path in places(DOCUMENT)}
    known = {(section, name) for _, section, _ in walk() for name in keys(section)}
    assert known - given == LEFT_OUT.keys()


def chains(path: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield the last key above every part of a path, with the part."""
    above = None
    for part in path:
        yield above, part
        above = above if isinstance(part, int) or above in FREE else part


def one_place_of_each_key() -> list[tuple[Any, ...]]:
    """Return the first place of every key and of every list's items."""
    first: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for path in places(DOCUMENT):
        # A list of mappings has its index after the key.
        if any(isinstance(part, str) and parent in FREE for parent, part in chains(path)):
            continue
        first.setdefault(tuple(0 if isinstance(part, int) else part for part in path), path)
    return list(first.values())


def depths() -> dict[int, list[tuple[Any, ...]]]:
    """Return the places by their depth: no place of a depth is above another."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for path in one_place_of_each_key():
        found.setdefault(len(path), []).append(path)
    return found


@pytest.mark.parametrize("depth", depths())
def test_values_of_the_wrong_kind_are_all_reported_at_their_places(depth: int) -> None:
    paths = depths()[depth]
    assert {path_text(path) for path in paths} <= problem_paths(wrong_at(paths))


@pytest.mark.parametrize(
    "path",
    # Every tenth for every commit, the others in continuous integration.
    [
        pytest.param(path, id=path_text(path), marks=[pytest.mark.thorough] if number % 10 else [])
        for number, path in enumerate(one_place_of_each_key())
    ],
)
def test_one_value_of_the_wrong_kind_is_reported_and_crashes_nothing(path: tuple[Any, ...]) -> None:
    """It turns red when a rule or a check reads the key without asking whether it could be read."""
    assert path_text(path) in problem_paths(wrong_at([path]))
