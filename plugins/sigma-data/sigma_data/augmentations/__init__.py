"""Augmentations: vary the rows of training, anew in each epoch."""
