"""Measurements: `make bench` prints one JSON object. Nothing here passes or fails."""
