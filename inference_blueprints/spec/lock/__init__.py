"""The lock of a blueprint: what it runs that others release, held until an upgrade is asked for."""
