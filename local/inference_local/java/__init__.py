"""The Java programs of this library, built and started on this machine."""
