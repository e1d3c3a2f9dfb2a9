"""Constraints on fields of the serving plan. The schemas of our charts enforce them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

#: Name of a process, a port or a sidecar; Kubernetes limits port names to 15 characters.
Name = Annotated[str, Field(pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=15)]
EnvironmentName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]*$")]
#: Address of a container image with its tag and, optionally, its digest.
Image = Annotated[str, Field(pattern="^[^:@]+(:[0-9]+)?[^:@]*:[^:@]+(@sha256:[0-9a-f]{64})?$")]
NonEmpty = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
