"""The platform on this machine: emulated AWS, real router, simulated engines."""
