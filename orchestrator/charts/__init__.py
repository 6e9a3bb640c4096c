"""Plots as descriptions, drawn as SVG for a page and by matplotlib for a paper."""
