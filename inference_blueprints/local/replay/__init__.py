"""Replays a recorded trace, scaled to a workload, against an OpenAI endpoint."""

from inference_blueprints.completions.outcome import Outcome, Usage
from inference_blueprints.local.replay.open_loop import Progress
from inference_blueprints.local.replay.outcome import ReplayResult
from inference_blueprints.local.replay.run import DEFAULT_SECONDS, replay_async
from inference_blueprints.local.replay.scale import ReplayError, ScalingFactors

__all__ = [
    "DEFAULT_SECONDS",
    "Outcome",
    "Progress",
    "ReplayError",
    "ReplayResult",
    "ScalingFactors",
    "Usage",
    "replay_async",
]
