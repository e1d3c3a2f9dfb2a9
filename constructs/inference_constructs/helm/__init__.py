"""Charts from registries and of this library."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.helm.release import HelmRelease
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = ["HelmRelease"]
