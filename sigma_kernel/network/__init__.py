"""Networks: the algebra of layers, its text form, tracing, and networks with names and shapes."""
