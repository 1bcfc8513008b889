"""Public conformance suites: what every component of a kind must do, as classes to inherit in a plugin's tests."""
