"""Workers that come and go in a local run, and the streams that they serve meanwhile."""
