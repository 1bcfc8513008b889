"""Watch and steer runs of Sigma in the browser."""
