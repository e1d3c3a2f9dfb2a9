"""The nodes that run the platform itself. Both synthesis and plans use these numbers."""

from __future__ import annotations

#: Managed node group for controllers that must run before Karpenter starts nodes. The third node is for
#: updates.
INSTANCE_TYPE = "m7i.xlarge"
NODES = 2
MAXIMUM_NODES = 3
#: Data volume of a node, in GiB.
DISK_GIB = 80

#: Karpenter's pool for routers that do not fit on the node group.
OVERFLOW_INSTANCE_TYPES = ("m7i.xlarge", "m7i.2xlarge", "m7i.4xlarge")
OVERFLOW_MAXIMUM_NODES = 20

#: Batch workers that fit on those nodes, in addition to routers. Each needs a vCPU; a node has up to 16.
BATCH_WORKERS = 100
