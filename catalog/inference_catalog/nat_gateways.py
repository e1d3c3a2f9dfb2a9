"""Limits of NAT gateways."""

from __future__ import annotations

#: "A NAT gateway supports 5 Gbps of bandwidth and automatically scales up to 100 Gbps"
#: (https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-basics.html).
MAXIMUM_MBPS = 100_000
