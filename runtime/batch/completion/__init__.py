"""From the results of shards to those of the job: one output file, one error file, sums, signals."""
