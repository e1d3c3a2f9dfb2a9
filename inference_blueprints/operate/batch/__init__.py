"""Client of a platform's batch API: submits jobs, follows them and reads their results."""
