"""How pods find the nodes of their pool: the label and the taint that nodes carry and pods name."""

from __future__ import annotations

from typing import Literal

#: Node label with the pool's name; NodePools and managed node groups set it, pods require it.
POOL_LABEL = "inference-blueprints/pool"

#: Label of pods that are packed, beside that of their pool: the accelerators of one.
ACCELERATORS_LABEL = "inference-blueprints/accelerators"

#: Node label of pools with EFA. Its device plug-in runs there and nowhere else, for it does not come to rest
#: on a node whose type has EFA and that was started without (https://github.com/aws/eks-charts/issues/1239).
EFA_LABEL = "inference-blueprints/efa"
EFA_LABEL_VALUE = "true"

#: Value and effect of the taint on accelerated nodes; its key is the accelerator's resource name, such as
#: ``nvidia.com/gpu``, which is also what device plug-ins and the system's own daemon sets tolerate.
ACCELERATOR_TAINT_VALUE = "true"
ACCELERATOR_TAINT_EFFECT: Literal["NoSchedule"] = "NoSchedule"

#: Processor architecture of the system nodes, on which routers and controllers run.
SYSTEM_ARCHITECTURE: Literal["amd64", "arm64"] = "amd64"
