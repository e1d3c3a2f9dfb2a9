"""Values of the front door of the shipped blueprint, with two and with six replicas."""

from __future__ import annotations

from dataclasses import replace

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.eks.front_door_values import front_door_values
from inference_blueprints.render.front_door.replica import DoorReferences
from inference_blueprints.serving.plan import build_plan
from inference_catalog.charts import charts
from tests.charts.renderings import Manifest

CHART = "front-door"
RELEASE = str(charts()[CHART].release)
#: Of its pods, in the order of their start.
CONTAINERS = ("certificates", "policy", "envoy")
PLAN = build_plan(load_blueprint("front-door").blueprint)
_REFERENCES = DoorReferences(
    configuration="s3://configuration-of-the-door/configuration.json",
    keys_table="keys",
    ledger_table="ledger",
    store_host="ledger.serverless.usw2.cache.amazonaws.com",
    store_cache="ledger",
    store_user="ledger-door",
    usage_stream="usage",
    certificate_secret="arn:aws:secretsmanager:us-west-2:111122223333:secret:door-AbCdEf",  # noqa: S106 - an ARN
    region="us-west-2",
)


def values(replicas: int) -> Manifest:
    """Return the values for a number of replicas."""
    assert PLAN.front_door is not None
    return front_door_values(
        PLAN,
        replace(PLAN.front_door, replicas=replicas),
        image="111122223333.dkr.ecr.us-west-2.amazonaws.com/front-door:0a1b2c3d",
        references=_REFERENCES,
    )


FIXED, SCALED = values(2), values(6)
#: Values by the name of their reviewed rendering.
BOTH = {"front-door": FIXED, "front-door-scaled": SCALED}
