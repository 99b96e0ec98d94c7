"""Creates ground truth by hand: a local page for judging passages, and audits of existing ground truth."""
