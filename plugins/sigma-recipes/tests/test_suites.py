"""Every recipe passes the suite of recipes, on the numpy backend and on few rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigma_kernel import Recipe
from sigma_recipes import recipes
from sigma_testing import RecipeSuite

from . import voices


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


class TestParkinsons(_Named):
    """The table, which does not come with Sigma, is made up."""

    name = "parkinsons"

    @pytest.fixture(autouse=True)
    def _table(self, tmp_path: Path) -> None:
        (tmp_path / "voices.csv").write_text(voices.table())
        self.settings = ("run.backend=numpy", f"data.path={tmp_path / 'voices.csv'}")


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


class TestCharmodel(_Named):
    name = "charmodel"
    settings = ("run.backend=numpy", "data.length=10", "data.split={training=0.002, validation=0.001}")


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


class TestBenchLstm(_Named):
    name = "bench-lstm"
    settings = ("run.backend=numpy", "data.rows=12", "data.batch_size=4")


class TestBenchTransformer(_Named):
    name = "bench-transformer"
    settings = ("run.backend=numpy", "data.rows=4", "data.batch_size=2")


class TestMnist(_Named):
    """The data set, which is downloaded, is replaced by one of the same shape."""

    name = "mnist"
    settings = (
        "run.backend=numpy",
        "data.dataset={ type = 'sigma-data:synthetic', rows = 12, shape = [28, 28], classes = 10 }",
        "data.batch_size=4",
    )
