"""Serve the predictions of a trained network by HTTP."""
