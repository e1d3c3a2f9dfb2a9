"""CPU and memory of one batch worker, for building and for cost plans."""

from __future__ import annotations

#: A pod on the platform's system nodes (`charts/batch-worker`).
POD_VCPU = 1
POD_MEMORY_GIB = 1

#: An AWS Fargate task; 2 GiB is the least memory for one vCPU.
TASK_VCPU = 1
TASK_MEMORY_GIB = 2

#: Factor on the number of tasks while a deployment replaces them.
TASKS_WHILE_REPLACED = 2
