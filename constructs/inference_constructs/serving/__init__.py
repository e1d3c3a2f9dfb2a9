"""AWS resources of a served model: its route and its permissions."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.serving.caller_certificates import CallerCertificates, CertifiedIdentity
    from inference_constructs.serving.model_route import (
        LAST_PRIORITY,
        Backend,
        FurtherAddress,
        ModelRoute,
        ModelTarget,
        ModelTargets,
        listener_priorities,
    )
    from inference_constructs.serving.weights_identity import WeightsIdentity
    from inference_constructs.serving.weights_permissions import (
        keep_artefacts,
        read_certificates,
        read_weights,
    )
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "LAST_PRIORITY",
    "Backend",
    "CallerCertificates",
    "CertifiedIdentity",
    "FurtherAddress",
    "ModelRoute",
    "ModelTarget",
    "ModelTargets",
    "WeightsIdentity",
    "keep_artefacts",
    "listener_priorities",
    "read_certificates",
    "read_weights",
]
