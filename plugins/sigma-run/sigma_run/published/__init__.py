"""Plugins that people publish: names for new ones, their index, and what their imports do."""
