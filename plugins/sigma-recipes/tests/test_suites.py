"""Every recipe passes the suite of recipes, on the numpy backend and on few rows."""

from __future__ import annotations

from sigma_kernel import Recipe
from sigma_kernel.testing import RecipeSuite
from sigma_recipes import recipes


class _Named(RecipeSuite):
    name: str
    settings = ("run.backend=numpy",)

    def make(self) -> Recipe:
        return recipes.recipe(self.name)


class TestDigits(_Named):
    name = "digits"


class TestIris(_Named):
    name = "iris"


class TestWdbc(_Named):
    name = "wdbc"


class TestTictactoe(_Named):
    name = "tictactoe"


class TestGan(_Named):
    name = "gan"


class TestXor(_Named):
    name = "xor"


class TestCnn(_Named):
    name = "cnn"


class TestResidual(_Named):
    name = "residual"


class TestAutoencoder(_Named):
    name = "autoencoder"


class TestLstm(_Named):
    name = "lstm"
    settings = ("run.backend=numpy", "data.rows=40", "data.steps=4", "data.batch_size=4")


class TestBenchIris(_Named):
    name = "bench-iris"


class _OfImages(_Named):
    settings = ("run.backend=numpy", "data.rows=12", "data.batch_size=4")


class TestBenchMlpSmall(_OfImages):
    name = "bench-mlp-small"


class TestBenchMlpLarge(_OfImages):
    name = "bench-mlp-large"


class TestBenchDeep(_OfImages):
    name = "bench-deep"


class TestBenchCnn(_OfImages):
    name = "bench-cnn"


class TestBenchResnet(_OfImages):
    name = "bench-resnet"


class TestMnist(_Named):
    """The data set, which is downloaded, is replaced by one of the same shape."""

    name = "mnist"
    settings = (
        "run.backend=numpy",
        "data.dataset={ type = 'sigma-data:synthetic', rows = 12, shape = [28, 28], classes = 10 }",
        "data.batch_size=4",
    )
