"""Makes and rotates the keys with which the platform's own programs call models through the front door."""
