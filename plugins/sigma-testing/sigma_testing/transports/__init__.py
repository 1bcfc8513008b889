"""The conformance suite of transports, with a small training that any transport can carry."""
