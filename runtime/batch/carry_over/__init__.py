"""Takes what teams have spent on jobs this month to the ledger of a new front door."""
