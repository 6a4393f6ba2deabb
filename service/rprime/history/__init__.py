"""Queries over stored evaluations: series, trends, leaderboards, stored reports."""
