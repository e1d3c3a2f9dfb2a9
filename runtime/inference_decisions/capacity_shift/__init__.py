"""Decides how much of a pool real time needs and how much batch may have. Nothing here calls a service.

`shift_decision.decide` is the one decision. `DemandHistory` is what it learns from, `CellView` what runs now,
`ShiftState` what it decided before, and `ShiftDecision` its answer with reasons. The Lambda function, the
command line and the replay of recorded days call the same function.
"""
