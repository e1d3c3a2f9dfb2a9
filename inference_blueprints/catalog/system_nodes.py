"""The nodes that the platform itself runs on: what is built, and what plans count."""

from __future__ import annotations

#: Managed node group, for what must run before Karpenter can start nodes; the third is for updates.
INSTANCE_TYPE = "m7i.xlarge"
NODES = 2
MAXIMUM_NODES = 3

#: Karpenter's pool for routers that the node group has no room for.
OVERFLOW_INSTANCE_TYPES = ("m7i.xlarge", "m7i.2xlarge", "m7i.4xlarge")
OVERFLOW_MAXIMUM_NODES = 20

#: Workers of batch that those nodes have room for, beside routers: each takes a vCPU, a node has up to 16.
BATCH_WORKERS = 100
