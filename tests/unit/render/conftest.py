from __future__ import annotations

from tests.unit.serving.conftest import _quickstart_document, make_blueprint

__all__ = ["_quickstart_document", "make_blueprint"]
