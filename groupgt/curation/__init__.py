"""Tools to build and audit ground truth: checks, rechunking, suggestions, near-duplicates, agreement."""
