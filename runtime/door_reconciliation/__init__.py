"""Compares what the ledger of the front door has counted with the usage records, team by team."""
