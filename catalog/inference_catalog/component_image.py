"""Container images that the library pins itself, besides those of the engines."""

from __future__ import annotations

from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class ComponentImage:
    """A container image, pinned by its tag because its digest is not known."""

    name: str
    """Key in the catalogue, such as ``llmDEndpointPicker``."""
    repository: str
    tag: str
    """`repository`, `tag`: Registry and repository, and the tag."""
    module: str
    """Go module of the program, whose versions are the program's releases."""

    @property
    def address(self) -> str:
        """Repository and tag, as in a pod."""
        return f"{self.repository}:{self.tag}"
