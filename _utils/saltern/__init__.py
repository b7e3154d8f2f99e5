"""Saltern's plain Python: parsing, comparing, deciding. No Salt, no input or output."""
