"""The signal store of a local run: its address, and the answers that a job wrote."""
