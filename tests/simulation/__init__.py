"""Simulations: do the intervals, tests and gates keep their promises on populations we know?"""
