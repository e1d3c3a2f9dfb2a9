"""Tables as data, and their layout in a terminal."""
