"""Child processes of this machine: their start, their end and their ports."""
