"""Labels, taints and the scheduler that bind pods to the nodes of their pool."""

from __future__ import annotations

from typing import Literal

#: Node label with the pool's name; NodePools and managed node groups set it, pods require it.
POOL_LABEL = "inference-blueprints/pool"

#: Label of packed pods, in addition to that of their pool: the number of accelerators per pod.
ACCELERATORS_LABEL = "inference-blueprints/accelerators"

#: Node label of pools with EFA. EFA's device plug-in runs only there, because it keeps failing on a node
#: whose type has EFA but that was started without it (https://github.com/aws/eks-charts/issues/1239).
EFA_LABEL = "inference-blueprints/efa"
EFA_LABEL_VALUE = "true"

#: Node label of pools whose image has no device plug-in for its GPUs. NVIDIA's runs only there: a second one
#: on a node with Bottlerocket would register the same devices.
DEVICE_PLUGIN_LABEL = "inference-blueprints/device-plugin"
DEVICE_PLUGIN_LABEL_VALUE = "nvidia"

#: Value and effect of the taint on accelerated nodes. Its key is the accelerator's resource name, such as
#: ``nvidia.com/gpu``, which device plug-ins and the system's own daemon sets also tolerate.
ACCELERATOR_TAINT_VALUE = "true"
ACCELERATOR_TAINT_EFFECT: Literal["NoSchedule"] = "NoSchedule"

#: Processor architecture of the system nodes, on which routers and controllers run.
SYSTEM_ARCHITECTURE: Literal["amd64", "arm64"] = "amd64"

#: Scheduler of pods with a part of a node's Neuron devices. It runs with AWS's scheduler extension, which
#: writes into the pod which devices it gets. The device plug-in reads them there, so all pods that share a
#: node need it (deploy/infrastructure/scheduler-flow.rst of aws-neuron/aws-neuron-sdk, steps 6 to 11).
NEURON_SCHEDULER = "neuron-scheduler"
