"""Finds GPUs that are broken or slow, and decides what to do about them. Nothing here calls a service.

``slow_workers.detect`` compares workers with their peers. ``fault_rules`` says what a hardware signal means,
``node_assessment`` what a live reading of a node proves, ``repair_guards`` whether a node may be replaced
now, and ``repair_steps`` what the next step of a replacement is. The Lambda functions and the simulator of a
fleet call the same functions.
"""
