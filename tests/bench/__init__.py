"""Benchmarks: paired ratios with their spread. `python -m tests.bench --write` runs them all and writes RESULTS.md."""
