"""The report as a single HTML file, generated from plain tables."""
