"""What one worker of batch asks for: what is built, and what plans count."""

from __future__ import annotations

#: A pod, on the platform's own nodes (`charts/batch-worker`).
POD_VCPU = 1
POD_MEMORY_GIB = 1

#: A task of AWS Fargate, which has no less memory for a vCPU.
TASK_VCPU = 1
TASK_MEMORY_GIB = 2

#: Tasks while a deployment replaces them, for each that there may be otherwise.
TASKS_WHILE_REPLACED = 2
