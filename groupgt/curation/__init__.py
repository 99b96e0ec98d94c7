"""Tools that check and rechunk ground truth, find near-duplicates, and measure agreement."""
