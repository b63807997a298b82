"""Measurements of the library against its peers; `scripts/bench` runs them."""
