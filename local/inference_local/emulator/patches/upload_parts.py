"""Refuses to complete an upload with small parts. ministack joins parts of any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ministack.services import s3

from inference_local.emulator.refusals import PART_TOO_SMALL

#: Each part but the last (Amazon S3 User Guide, "Amazon S3 multipart upload limits").
_MINIMUM_BYTES: Final = 5 * 1024**2
_PLAIN_COMPLETE = s3._complete_multipart_upload


def _complete(bucket: str, key: str, body: bytes, query: Mapping[str, Any], *others: Any) -> Any:
    upload = s3._multipart_uploads.get(s3._qp(query, "uploadId"))
    parts = upload["parts"] if upload else {}
    if any(len(part["body"]) < _MINIMUM_BYTES for number, part in parts.items() if number != max(parts)):
        error = PART_TOO_SMALL.error()
        return s3._error(error.code, str(error), 400, f"/{bucket}/{key}")
    return _PLAIN_COMPLETE(bucket, key, body, query, *others)


def apply() -> None:
    """Apply the patch."""
    s3._complete_multipart_upload = _complete
