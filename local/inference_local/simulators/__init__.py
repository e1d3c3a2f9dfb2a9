"""Simulators of fleets and elastic workers, with which benchmarks and tests compare decisions."""
