"""The filters that read and write the bodies of requests: small programs in Lua.

Lua is stable and robust to untrusted callers (Envoy's ``extensions_metadata.yaml``). Envoy's filter
``transform`` is alpha, its posture is unknown, and it writes JSON anew: names of fields in another order,
which changes prompts with tools and the order in which structured output is generated; 100000 as ``1e+05``;
and 64-bit seeds rounded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_blueprints.render.front_door.errors import NOT_CHECKED, envelope
from inference_contracts import door_headers
from inference_contracts.request_headers import BATCH_HEADERS
from inference_contracts.routing_headers import HARMLESS, ROUTING_PREFIXES

READ: Final = "door.read"
WRITE: Final = "door.write"
IDENTIFY: Final = "door.identify"
#: Largest body that is read before the caller is known.
STRANGERS_BYTES: Final = 64 * 1024
#: What identifies a caller and reserves nothing: the policy's decision on the list of models.
_IDENTIFICATION: Final = f"{door_headers.DECIDE}/v1/models"
_FOLDER: Final = Path(__file__).with_name("data")


def reading_filter(largest_body_bytes: int) -> Document:
    """Return the filter that reads what the policy must know into headers."""
    return _lua(READ, _program("read_body").replace("@LARGEST@", str(largest_body_bytes)))


def identifying_filter() -> Document:
    """Return the filter that asks who the caller is. It has no program but on routes of large bodies."""
    return parts.extension(IDENTIFY, "filters.http.lua.v3.Lua", stat_prefix=IDENTIFY)


def identifying_program() -> Document:
    """Return the configuration of `identifying_filter` for a route."""
    program = _program("identify").replace("@POLICY@", door_headers.POLICY_CLUSTER)
    program = program.replace("@IDENTIFY@", _IDENTIFICATION)
    program = program.replace("@NO_DECISION@", json.dumps(envelope(503, "unavailable", NOT_CHECKED)))
    return parts.typed("filters.http.lua.v3.LuaPerRoute", source_code={"inline_string": program})


def writing_filter() -> Document:
    """Return the filter that writes the served name, asks for usage, and removes headers."""
    program = _program("write_body")
    program = program.replace("@PREFIXES@", _list(ROUTING_PREFIXES))
    program = program.replace("@HARMLESS@", _table({each: each for each in sorted(HARMLESS)}))
    program = program.replace("@POLICY@", door_headers.POLICY_CLUSTER)
    return _lua(WRITE, program.replace("@EXACT@", _table(dict(BATCH_HEADERS))))


def _lua(name: str, program: str) -> Document:
    return parts.extension(
        name, "filters.http.lua.v3.Lua", default_source_code={"inline_string": program}, stat_prefix=name
    )


def _list(values: Sequence[str]) -> str:
    return "{ " + ", ".join(map(json.dumps, values)) + " }"


def _table(values: dict[str, str]) -> str:
    """Return a table of Lua. The texts are plain, so JSON's form of them is Lua's."""
    return (
        "{ " + ", ".join(f"[{json.dumps(key)}] = {json.dumps(text)}" for key, text in values.items()) + " }"
    )


@cache
def _program(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text(encoding="utf-8")
