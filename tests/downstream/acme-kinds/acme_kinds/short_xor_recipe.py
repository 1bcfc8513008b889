"""Learn exclusive or in a second."""

from sigma_kernel import Recipe

TEXT = """\
# Learn exclusive or with a small network.
format = 1

[run]
name = "short_xor"
seed = 0
prefer = ["acme-kinds", "sigma-layers", "sigma-data", "sigma-optimisers", "sigma-backend-numpy", "sigma-operator-local"]
backend = "numpy"

[data]
dataset = "xor"

[network]
architecture = "input(2) + dense(8, activation='tanh') + output(2) + softmax_cross_entropy()"

[trainer]
epochs = 100
optimiser = { type = "adam", learning_rate = 0.05 }
"""
short_xor = Recipe("short_xor", TEXT)
