"""The computation graph: nodes, the table of ops, and what is done to graphs before a backend compiles them.

Layers are written in :mod:`sigma_kernel.graph.functions`; nothing in here knows a layer or a backend.
"""
