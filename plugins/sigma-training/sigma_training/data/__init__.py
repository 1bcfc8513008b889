"""Datasets, preprocessing, and the feed of minibatches."""
