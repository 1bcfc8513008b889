"""The hook that lets a network of characters write while it learns, and the generator with which it does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel import Dataset, Environment, SigmaConfigError, SigmaTrainingError
from sigma_kernel.contracts import Hook, TextGenerator
from sigma_kernel.graph import Spec
from sigma_testing import Desk, GeneratorSuite, HookSuite, Sweep, small_environment
from sigma_text import CharacterGenerator, TextSample

CODES = np.array([[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]] * 4, np.int32)
NETWORK = "input(4, dtype='int32') + embedding(4, 8) + output(4) + softmax_cross_entropy()"


@define(eq=False)
class Rounds(Dataset):
    """Windows of the text abcdabcd..."""

    @property
    def sections(self) -> Mapping[str, Spec]:
        return {"inputs": Spec((4,), "int32"), "targets": Spec((4,), "int32")}

    @property
    def blocks(self) -> int:
        return 1

    def rows(self, block: int) -> int:
        return len(CODES)

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        return {"inputs": CODES.copy(), "targets": (CODES + 1) % 4}

    @property
    def learned(self) -> Mapping[str, Any]:
        return {"characters": "abcd"}


class TestTextSample(HookSuite):
    def make(self) -> Hook:
        return TextSample(text="ab", length=5)

    def environment(self, hooks: Mapping[str, Hook]) -> Environment:
        environment = small_environment(Sweep(), hooks=hooks)
        trainer = environment.trainer("trainer")
        trainer.data, trainer.network, trainer.batch_size = Rounds(), NETWORK, 4
        return environment


class TestCharacterGenerator(GeneratorSuite):
    text = "ab"

    def make(self) -> TextGenerator:
        return CharacterGenerator()

    def trainer(self) -> Any:
        return trained(TextSample(text="ab", length=1), epochs=1)


def trained(hook: TextSample, folder: Path | None = None, epochs: int = 30) -> Any:
    sigma = Environment("letters", seed=1, folder=folder)
    made = sigma.create_trainer(
        data=Rounds(), network=NETWORK, optimiser={"type": "adam", "learning_rate": 0.1}, backend="numpy",
        hooks={"writes": hook},
    )  # fmt: skip
    made.fit(epochs=epochs)
    return made


def test_the_text_with_its_beginning_is_published_and_logged() -> None:
    desk = Desk()
    TextSample(text="a\nb", length=4).fire(desk)
    assert desk.values == {"text.sample": "a\nba\nba"}
    assert desk.logged == ["epoch 0 writes:\n  a\n  ba\n  ba"]


def test_what_is_published_is_what_the_trainer_writes(tmp_path: Path) -> None:
    made = trained(TextSample(text="ab", length=9, temperature=0.5, seed=3), tmp_path)
    assert made.read_published("text.sample") == {"text.sample": "ab" + made.generate("ab", 9, 0.5, 3)}


def test_a_learnt_pattern_is_written() -> None:
    made = trained(TextSample(text="ab", length=9, temperature=0))
    assert made.read_published("text.sample") == {"text.sample": "abcdabcdabc"}


def test_a_character_that_the_network_has_not_learned_fails_the_run_with_its_name() -> None:
    with pytest.raises(
        SigmaTrainingError, match=r"hook 'writes' .*has not learned 'e'. It knows these characters: 'abcd'"
    ):
        trained(TextSample(text="be"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"text": ""}, "TextSample.text"),
        ({"length": 0}, "TextSample.length: must be at least 1"),
        ({"length": 20_000}, "TextSample.length: must be at most 10000"),
        ({"temperature": -1.0}, "TextSample.temperature: must be at least 0"),
        ({"seed": -1}, "TextSample.seed: must be at least 0"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SigmaConfigError, match=message):
        TextSample(**wrong)
