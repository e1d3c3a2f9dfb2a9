"""Account, network and cluster of a platform."""
