"""Replays recorded request rates against the capacity shift of a blueprint, and explains its decisions."""
