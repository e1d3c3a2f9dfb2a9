"""Networks of valid blueprints, drawn from what the blueprint's types allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
Draw = Callable[..., Any]

_UUID = "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"


@st.composite
def vpcs(draw: Draw, zones: Sequence[str] | None) -> Document:
    """Return a new VPC or an existing one, which is in zones that are named."""
    if zones and draw(st.booleans()):
        subnets = [f"subnet-0a1b2c{index:02}" for index in range(len(zones))]
        existing = {"vpcId": "vpc-0a1b2c3d", "vpcCidr": "172.31.0.0/16", "privateSubnetIds": subnets}
        return {"existing": existing}
    return {"cidr": f"10.16.0.0/{draw(st.integers(16, 20))}"} if draw(st.booleans()) else {}


@st.composite
def networks(draw: Draw, region: str, account: str) -> Document:
    """Return how it is reached: over HTTP or HTTPS, by whom and by which name."""
    network: Document = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "sourceCidrs": st.lists(
                    st.sampled_from(["10.0.0.0/8", "192.168.0.0/24", "0.0.0.0/0"]), min_size=1, unique=True
                ),
                "domain": st.just("models.example.com"),
            },
        )
    )
    if "domain" in network and draw(st.booleans()):
        network["certificateArn"] = f"arn:aws:acm:{region}:{account}:certificate/{_UUID}"
    return network
