"""The report: one HTML file from plain tables."""
