"""Measure how many images a second a network is trained with; see README.md next to this folder."""
