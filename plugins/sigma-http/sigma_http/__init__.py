"""Serve HTTP: the guard of requests, tokens and wrong keys, and the loop of a server."""
