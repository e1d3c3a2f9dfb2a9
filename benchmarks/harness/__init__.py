"""Common code of the benchmarks: figures, measurements in turns, and results."""
