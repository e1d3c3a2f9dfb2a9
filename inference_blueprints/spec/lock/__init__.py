"""The lock of a blueprint: its third-party versions, which stay until an upgrade."""
