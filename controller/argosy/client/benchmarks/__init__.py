"""What did training benchmarks measure, and how do they compare?"""
