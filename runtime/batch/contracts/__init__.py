"""What the parts of batch hand to one another: keys in S3, lines of a shard, messages, states of a job."""
