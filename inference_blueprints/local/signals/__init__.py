"""The signal store of a run on this machine: where it is, and what a job left in it."""
