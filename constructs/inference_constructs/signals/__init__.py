"""The signal store: what answers reads while a request waits, and the history of what was written."""
