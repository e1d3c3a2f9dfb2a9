"""The page on the door's Envoy names each part of Envoy that the configuration has, and no other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from inference_blueprints.render.envoy.parts import CertificateFiles, Peer
from inference_blueprints.render.front_door.connections import HEAD_SECONDS, IDLE_SECONDS, REQUEST_SECONDS
from inference_blueprints.render.front_door.documents import door_documents
from inference_blueprints.render.front_door.errors import local_replies
from inference_blueprints.render.front_door.places import DoorPlaces, UpstreamPlace
from inference_blueprints.render.front_door.routes import MODEL_PATHS
from inference_blueprints.resources import root
from inference_blueprints.serving.types.front_door import DoorKeySet
from tests.unit.render.front_door.small_plans import small_plan

_PART = re.compile(r"envoy\.(?:extensions\.(.+)\.v3\.\w+|config\.trace\.v3\.(\w+)Config)$")
_ROW = re.compile(r"^\| `([a-z_.]+\.[a-z_.]+)` \|", re.MULTILINE)


@pytest.fixture(scope="module")
def page() -> str:
    return (root() / "docs/front-door-envoy.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def documents() -> list[Any]:
    files = CertificateFiles("/certificates")
    key_set = DoorKeySet("https://login.example.com", "door", "https://login.example.com/keys", None)
    places = DoorPlaces(
        address="127.0.0.1",
        port=8443,
        certificate=files,
        files="/run/door",
        policy_socket="/run/door/policy.sock",
        admin_socket="/run/door/envoy.sock",
        access_log="/var/log/door/access.log",
        clusters={name: UpstreamPlace("model", 8443, Peer(files), files) for name in ("one", "two")},
        trusted="/etc/ssl/certs/ca-certificates.crt",
        batch=UpstreamPlace("batch.example.com", 443, Peer("/etc/ssl/certs/ca-certificates.crt")),
        traces=UpstreamPlace("agent", 4318),
        metrics_port=9090,
    )
    found = door_documents(small_plan((key_set,), trace_ratio=0.01), places)
    return [found.bootstrap, found.listeners, found.clusters]


def types(document: Any) -> Iterator[str]:
    """Yield all types of a document."""
    if isinstance(document, dict):
        if "@type" in document:
            yield document["@type"]
        document = [*document.values()]
    if isinstance(document, list):
        for each in document:
            yield from types(each)


def test_each_part_has_a_row(page: str, documents: list[Any]) -> None:
    """Red if a filter is added without its status, its posture and what attacks it."""
    used = {
        (match[1] or f"tracers.{match[2]}").lower()
        for each in types(documents)
        if (match := _PART.search(each))
    }
    assert used == set(_ROW.findall(page))


def test_paths_and_errors_are_on_the_page(page: str) -> None:
    codes = set(re.findall(r'"code": "(\w+)"', json.dumps(local_replies())))
    assert codes
    assert [
        code for code in (*codes, *MODEL_PATHS) if f"`{code}`" not in page and f" {code}`" not in page
    ] == []


def test_times_are_those_of_the_configuration(page: str) -> None:
    times = {"head of a request": HEAD_SECONDS, "whole request": REQUEST_SECONDS}
    for what, seconds in times.items():
        assert f"| {what} | {seconds} s |" in page
    assert f"request or an answer | {IDLE_SECONDS} s |" in page


def test_nothing_is_plain_where_certificates_are_given(documents: list[Any]) -> None:
    """Red if a cluster of a model, of the batch API or of an issuer could be without TLS. Spans have none."""
    _, listeners, clusters = documents
    names = {each["name"] for each in clusters["resources"] if "transport_socket" in each}
    assert names == {"one", "two", "batch", "issuer-0"}
    [door] = listeners["resources"]
    assert all("transport_socket" in chain for chain in door["filter_chains"])
