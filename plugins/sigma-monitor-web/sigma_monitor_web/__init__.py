"""A dashboard for Sigma: a run in the browser, to watch and to steer."""
