"""Averages, spreads, quantiles and histograms."""
