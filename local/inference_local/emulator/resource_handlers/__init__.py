"""CloudFormation resource types that this project adds to the emulator."""

from collections.abc import Mapping

from inference_local.emulator.resource_handlers.stubs import STUBS


def stubbed_resource_types() -> Mapping[str, str]:
    """Return the resource types that are accepted, but not created.

    Returns: One sentence per type: what is accepted and what does not happen.
    """
    return {resource_type: stub.purpose for resource_type, stub in STUBS.items()}
