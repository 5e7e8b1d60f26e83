"""The measurements of training benchmarks, and their comparison."""
