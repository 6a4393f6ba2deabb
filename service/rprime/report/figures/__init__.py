"""Figures without a browser, by matplotlib, which is only imported to draw one."""
