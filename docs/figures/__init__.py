"""The figures of the documentation, each beside the module that draws it."""
