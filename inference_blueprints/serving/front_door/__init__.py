"""The plan of the front door: where requests go, what they cost, and how large the door is."""
