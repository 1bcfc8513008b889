"""Pictures of any size and format, decoded to arrays of one shape."""
