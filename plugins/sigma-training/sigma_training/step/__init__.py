"""The training step: its graphs, programs, live values, and evaluation."""
