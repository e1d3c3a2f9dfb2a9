"""Environment variables of the function behind the API of API keys."""

from __future__ import annotations

from typing import Final

TABLE: Final = "KEY_API_TABLE"
AUDIT_BUCKET: Final = "KEY_API_AUDIT_BUCKET"
RULES: Final = "KEY_API_RULES"
