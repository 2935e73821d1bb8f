"""Run one program to its end: start it, follow its output, keep its time limits, stop its tree.

A library of its own: it knows neither agents nor the loop.
"""
