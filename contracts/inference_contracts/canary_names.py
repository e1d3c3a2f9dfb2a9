"""Names that the canary's function and the alarms on its metrics share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

METRIC_NAMESPACE: Final = "InferenceBlueprints/Canary"
#: 1 if the model answered, else 0.
ANSWERED: Final = "Success"
#: Time until the whole answer was there.
MILLISECONDS: Final = "Milliseconds"
PLATFORM_DIMENSION: Final = "Platform"
MODEL_DIMENSION: Final = "Model"
#: Environment of the function: `metadata.name`, and a JSON list of objects with `name`, `url` (to `/v1`),
#: `task` (`generate`, `embed` or `images`) and `asked`, the model's name in requests if it is another one.
#: Behind a front door also `platform_keys.SECRET_VARIABLE`.
PLATFORM_VARIABLE: Final = "CANARY_PLATFORM"
MODELS_VARIABLE: Final = "CANARY_MODELS"
#: Memory of the function, and how long it waits for one answer.
MEMORY_MIB: Final = 128
ANSWER_SECONDS: Final = 60
#: Calls that Lambda keeps room for: a round never begins before the one before it has ended.
CANARY_CALLS: Final[Mapping[str, int]] = {"canary": 1}
