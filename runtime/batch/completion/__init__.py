"""Turns the results of shards into the results of the job: output file, error file, totals and signals."""
