"""What makes ECS start a new deployment of a service when its capacity providers change.

ECS refuses a change of the strategy without one (pipe-cd/pipecd#6385; CloudFormation User Guide,
AWS::ECS::Service). CloudFormation forces one if the nonce changes, and none if it stays (AWS CDK,
ForceNewDeployment).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any


def strategy_nonce(strategy: Sequence[Mapping[str, Any]]) -> str:
    """Return a word that differs for each strategy.

    Parameters
    ----------
    strategy
        Capacity providers in the form of the API: ``capacityProvider``, ``base``, ``weight``.
    """
    text = json.dumps([dict(each) for each in strategy], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
