"""Making ground truth by hand: a local page on which people judge passages, and audits of existing ground truth."""
