"""Programs around a streaming job: what its deployment needs, the probe, and the redrive of dead letters."""
