"""Calls the functions around streaming jobs: the probe, and the redrive of dead letters."""
