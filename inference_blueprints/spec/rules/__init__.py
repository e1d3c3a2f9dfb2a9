"""Rules that a blueprint must follow beyond its types, by subject and listed in one table."""
