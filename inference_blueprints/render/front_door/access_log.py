"""The line of the access log that settles a request."""

from __future__ import annotations

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_contracts import door_log


def access_log(path: str) -> Document:
    """Return the access log of the door.

    path: Its file.
    """
    return parts.extension(
        "envoy.access_loggers.file",
        "access_loggers.file.v3.FileAccessLog",
        path=path,
        log_format={"json_format": door_log.FIELDS, "omit_empty_values": True},
    )
