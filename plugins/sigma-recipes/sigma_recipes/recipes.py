"""Recipes: each is the text of the TOML file of its name in this package."""

from __future__ import annotations

from importlib.resources import files

from sigma_kernel.contracts import Recipe


def recipe(name: str) -> Recipe:
    """Return the recipe of that name."""
    return Recipe(name, (files("sigma_recipes") / f"{name}.toml").read_text(encoding="utf-8"))


autoencoder = recipe("autoencoder")
bench_cnn = recipe("bench-cnn")
bench_deep = recipe("bench-deep")
bench_iris = recipe("bench-iris")
bench_lstm = recipe("bench-lstm")
bench_mlp_large = recipe("bench-mlp-large")
bench_mlp_small = recipe("bench-mlp-small")
bench_resnet = recipe("bench-resnet")
bench_transformer = recipe("bench-transformer")
charmodel = recipe("charmodel")
cnn = recipe("cnn")
digits = recipe("digits")
gan = recipe("gan")
iris = recipe("iris")
lstm = recipe("lstm")
mnist = recipe("mnist")
parkinsons = recipe("parkinsons")
residual = recipe("residual")
tictactoe = recipe("tictactoe")
wdbc = recipe("wdbc")
xor = recipe("xor")
