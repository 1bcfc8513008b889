"""Ready-to-run configurations, for Sigma."""
