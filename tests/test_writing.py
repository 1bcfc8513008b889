"""Networks that were trained on characters continue a text: from Python, and by ``sigma predict --text``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, HookContext, catalogue
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError, SigmaPluginError
from sigma_kernel.graph import Draw
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_layers import Embedding, Input, Output, SoftmaxCrossEntropy, TransformerDecoder
from sigma_run import load
from sigma_run.config import build, load as read
from sigma_testing.doing import Do
from sigma_text import Text
from sigma_text.writing import _draw_index

pytestmark = pytest.mark.rooms

PATTERN = "hello, old world. "  # after an l, an o or a blank, what follows depends on what came before
CHARACTERS = "".join(sorted(set(PATTERN)))
COUNT = len(CHARACTERS)
BODIES = {
    "lstm": "lstm(24, sequence=true)",
    "stacked": "gru(8, sequence=true) + simple_rnn(8, sequence=true)",
    "attention": "learned_positions() + repeat(2, transformer_encoder(2, causal=true))",
    "rotary": "transformer_encoder(2, causal=true, rotary=100.0) + lstm(8, sequence=true)",
}


def network(body: str) -> str:
    head = f"input(none, dtype='int32') + embedding({COUNT}, 16)"
    return f"{head} + {body} + output({COUNT}) + softmax_cross_entropy()"


@pytest.fixture(scope="session")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "pattern.txt"
    path.write_text(PATTERN * 40)
    return path


def trainer(pattern: Path, body: str, length: int = 12, backend: str = "numpy", **settings: Any) -> Any:
    settings = {"optimiser": {"type": "adam", "learning_rate": 0.02}, "batch_size": 16, **settings}
    data = Text(pattern, length=length)
    sigma = Environment("text", seed=4, precision="float64")
    return sigma.create_trainer(data=data, network=network(body), backend=backend, **settings)


# -- what is written ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("body", ["lstm", "attention"])
def test_a_repeated_pattern_is_learnt_and_continued_exactly(pattern: Path, body: str) -> None:
    made = trainer(pattern, BODIES[body], length=17)  # so that windows begin anywhere in the pattern
    made.fit(epochs=40)
    assert made.evaluate("validation", {"bits": "bits_per_character"})["bits"] < 0.35
    assert made.generate("hello,", 60, temperature=0) == (PATTERN * 5)[6:66]
    assert made.generate(PATTERN * 3 + "hello, ol", 20, temperature=0) == (PATTERN * 5)[9:29]


def anew(made: Any, text: str, window: int, length: int) -> str:
    """Continue a text by predicting all of it once more for each character."""
    codes, start = [CHARACTERS.index(one) for one in text], 0
    for _ in range(length):
        if len(codes) - start > window:
            start = len(codes) - window // 2
        seen = codes[start:]
        size = made.session.setup.model.sections["inputs"].shape[0]
        padded = np.zeros((1, size), np.int32)
        padded[0, : len(seen)] = seen
        codes.append(int(made.predict(padded)[0, len(seen) - 1].argmax()))
    return "".join(CHARACTERS[code] for code in codes[len(text) :])


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_recurrent_network_goes_on_beyond_its_windows_as_if_it_read_all_anew(pattern: Path, backend: str) -> None:
    short, long = (trainer(pattern, BODIES["stacked"], length, backend) for length in (12, 40))  # of equal parameters
    assert short.generate("world", 34, temperature=0) == anew(long, "world", 40, 34)


@pytest.mark.parametrize("body", ["attention", "rotary"])
@pytest.mark.parametrize("text", ["w", "hello, old world."])
def test_a_network_with_positions_reads_on_from_half_a_window_when_that_is_full(
    pattern: Path, body: str, text: str
) -> None:
    made = trainer(pattern, BODIES[body])
    assert made.generate(text, 30, temperature=0) == anew(made, text, 12, 30)


def test_mixed_precision_writes_as_it_predicts(pattern: Path) -> None:
    sigma = Environment("text", seed=4, precision="mixed")
    made = sigma.create_trainer(
        data=Text(pattern, length=12), network=network(BODIES["attention"]), optimiser="adam", backend="numpy"
    )
    assert made.generate("hello", 7, temperature=0) == anew(made, "hello", 12, 7)


def test_the_same_seed_writes_the_same_text(pattern: Path) -> None:
    made = trainer(pattern, BODIES["lstm"])
    first, same, other = (made.generate("hello", 50, seed=seed) for seed in (1, 1, 2))
    assert first == same != other
    assert made.generate("hello", 20, seed=1) == first[:20]
    assert len(first) == 50
    assert made.generate("hello", 0) == ""


def test_characters_are_drawn_by_their_probabilities_to_the_power_of_the_inverse_temperature() -> None:
    probabilities, draw = np.array([0.5, 0.3, 0.2, 0.0]), Draw(3, 1)
    for temperature in (0.5, 1.0, 2.0):
        found = np.bincount([_draw_index(probabilities, temperature, draw) for _ in range(1500)], minlength=4) / 1500
        wanted = probabilities ** (1 / temperature)
        np.testing.assert_allclose(found, wanted / wanted.sum(), atol=0.04)
        assert found[3] == 0
    assert {_draw_index(probabilities, 1e-300, draw) for _ in range(9)} == {0}


def test_at_temperature_0_the_first_of_equal_characters_is_written() -> None:
    assert _draw_index(np.array([0.2, 0.4, 0.4]), 0, Draw(0, 1)) == 1


def test_predictions_that_are_not_finite_are_refused() -> None:
    with pytest.raises(SigmaNetworkError, match="generate: predictions are not finite. Train with other settings"):
        _draw_index(np.array([np.nan, 1.0]), 1.0, Draw(0, 1))


def test_writing_changes_nothing_in_training(pattern: Path) -> None:
    watched, alone = (trainer(pattern, BODIES["lstm"]) for _ in range(2))
    watched.fit(epochs=1)
    watched.generate("hello")
    watched.fit(epochs=1)
    alone.fit(epochs=2)
    for name, value in alone.session.snapshot().arrays.items():
        assert value.tobytes() == watched.session.snapshot().arrays[name].tobytes(), name


def test_a_hook_writes_the_same_in_the_background(pattern: Path) -> None:
    made, written = trainer(pattern, BODIES["lstm"]), list[str]()

    def write(context: HookContext) -> None:
        written.append(context.generate("hello", length=9, temperature=0.5, seed=3))

    made.hooks = {str(aside): Do(does=write, splits=("training",), background=aside) for aside in (False, True)}
    made.fit(epochs=1)
    assert written == [made.generate("hello", 9, 0.5, 3)] * 2


def test_averaged_weights_write_as_well(pattern: Path) -> None:
    optimiser = {"type": "adam", "learning_rate": 0.05, "modifiers": {"average": {"type": "average", "decay": 0.9}}}
    made = trainer(pattern, BODIES["lstm"], optimiser=optimiser)
    made.fit(epochs=3)
    averages = made.generate("hello", 40, seed=1, weights="average")
    assert averages == made.generate("hello", 40, seed=1, weights="average") != made.generate("hello", 40, seed=1)


# -- run folders -------------------------------------------------------------------------------------------------------
RUN = """
format = 1
[run]
name = "text"
backend = "numpy"
[data]
dataset = "text"
path = "pattern.txt"
length = 12
batch_size = 16
[network]
architecture = "{network}"
[trainer]
optimiser = {{ type = "adam", learning_rate = 0.02 }}
[hooks.score]
type = "bits_per_character"
[hooks.writes]
type = "text_sample"
text = "he"
length = 20
[hooks.save]
type = "checkpoint"
every = "1 epoch"
[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a text, a configuration, its run, and what the trainer wrote."""
    home = tmp_path_factory.mktemp("trained")
    (home / "pattern.txt").write_text(PATTERN * 40)
    (home / "run.toml").write_text(RUN.format(network=network(BODIES["lstm"])))
    with build(read(home / "run.toml")) as environment:
        environment.folder = home / "runs"
        environment.run()
        (home / "expected").write_text(environment.trainers["trainer"].generate("hello", 40, seed=5))
    return home


@pytest.fixture
def folder(trained: Path, tmp_path: Path, sigma: Any) -> Path:
    """Return the folder of the run, whose text has gone."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pattern.txt").rename(tmp_path / "moved.txt")
    (found,) = (tmp_path / "runs").iterdir()
    return found


def test_a_run_folder_alone_writes_what_the_trainer_wrote(folder: Path, tmp_path: Path) -> None:
    model, expected = load(folder), (tmp_path / "expected").read_text()
    assert model.generate("hello", 40, seed=5) == expected
    assert "".join(model.continuation("hello", 40, seed=5)) == expected
    assert "".join(map(str, model.classes)) == "".join(model.inference().classes) == CHARACTERS
    (tmp_path / "moved.txt").rename(tmp_path / "pattern.txt")
    model.trainer.save(tmp_path / "saved")
    assert load(tmp_path / "saved").generate("hello", 40, seed=5) == expected


def test_a_run_that_writes_replays_and_resumes_to_the_bit(folder: Path, tmp_path: Path, sigma: Any) -> None:
    (tmp_path / "moved.txt").rename(tmp_path / "pattern.txt")
    assert sigma("replay", folder, "--check")[0] == 0
    assert sigma("resume", folder, "--set", "hooks.finish.when=epoch reaches 3")[0] == 0
    whole = RUN.replace("reaches 2", "reaches 3").format(network=network(BODIES["lstm"]))
    (tmp_path / "whole.toml").write_text(whole)
    assert sigma("run", "whole.toml", "--set", "run.name=whole")[0] == 0
    one, other = (load(run) for run in (folder, next((tmp_path / "runs").glob("whole*"))))
    assert {a: x.tobytes() for a, x in one.parameters().items()} == {
        a: x.tobytes() for a, x in other.parameters().items()
    }
    assert one.generate("he", 40) == other.generate("he", 40)


def test_another_text_is_evaluated_in_the_characters_of_the_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "part.txt").write_text("hello, hello! ".replace("!", ".") * 9)  # it has fewer characters
    model, other = load(folder), Text(tmp_path / "part.txt", length=12, split={"training": 1.0})
    bits = model.evaluate(other, {"bits": "bits_per_character"})["bits"]
    codes = np.array(
        [[CHARACTERS.index(one) for one in ("hello, hello. " * 9)[at : at + 13]] for at in range(0, 120, 12)]
    )
    found = model.predict(codes[:, :-1].astype(np.int32))
    own = np.take_along_axis(found, codes[:, 1:, None], -1)
    assert bits == pytest.approx(-np.log2(own).mean(), rel=1e-5)
    (tmp_path / "part.txt").write_text("quiz " * 9)
    with pytest.raises(SigmaDataError, match="'i', 'q', 'u', 'z': not among the 10 characters"):
        model.evaluate(Text(tmp_path / "part.txt", length=4, split={"training": 1.0}))


# -- the command -------------------------------------------------------------------------------------------------------
def test_the_command_continues_a_text(folder: Path, tmp_path: Path, sigma: Any) -> None:
    code, out, err = sigma("predict", folder, "--text", "hello", "--length", 40, "--seed", 5)
    assert (code, out) == (0, f"hello{(tmp_path / 'expected').read_text()}\n")
    assert "(the newest)" in err
    assert sigma("predict", folder, "--text", "hello", "--temperature", 0)[1] == (
        f"hello{load(folder).generate('hello', 200, 0)}\n"
    )


def test_the_command_says_with_json_how_it_wrote(folder: Path, sigma: Any) -> None:
    code, out, _ = sigma("predict", folder, "--text", "he", "--length", 7, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["continuation"] == load(folder).generate("he", 7)
    assert {n: found[n] for n in ("text", "length", "temperature", "seed")} == {
        "text": "he", "length": 7, "temperature": 1.0, "seed": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "There is nothing to predict from. Give files, or a text to continue with --text."),
        (["x.csv", "--text", "he"], "Both INPUT and --text were given. Give files, or a text"),
        (["x.csv", "--seed", "1"], "--seed is for a text to continue. Give --text as well, or leave it out."),
        (["--text", "he", "--output", "x.csv"], "--output is for files to predict from. Leave it out with --text."),
        (["--text", "he", "--top", "2"], "--top is for files to predict from. Leave it out with --text."),
        (["--text", "he", "--white", "0"], "--white is for files to predict from. Leave it out with --text."),
        (["--text", "he", "--length", "0"], "Invalid value for '--length': 0 is not in the range x>=1."),
        (["--text", "he", "--temperature", "-1"], "Invalid value for '--temperature': -1.0 is not in the range x>=0."),
        (["--text", "he", "--temperature", "nan"], "temperature must be a number from 0 on (got nan)."),
        (["--text", "he", "--seed", str(2**64)], "seed: must be a whole number from 0 to 2**64 - 1"),
        (["--text", ""], "the text must be a string of at least one character (got '')."),
        (["--text", "help us"], "the network has not learned 'p', 'u', 's'. It knows these characters: ' ,.dehlorw'."),
    ],
)
def test_the_command_refuses_what_it_cannot_do(folder: Path, sigma: Any, arguments: list[str], message: str) -> None:
    code, out, err = sigma("predict", folder, *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


def test_nothing_is_printed_for_a_network_that_cannot_continue_a_text(tmp_path: Path, sigma: Any) -> None:
    (tmp_path / "pattern.txt").write_text(PATTERN * 40)
    body = "lstm(8, sequence=true, direction='bidirectional')"
    silent = RUN.replace('[hooks.writes]\ntype = "text_sample"\ntext = "he"\nlength = 20\n', "")
    (tmp_path / "run.toml").write_text(silent.format(network=network(body)))
    assert sigma("run", "run.toml", "--set", "hooks.finish.when=epoch reaches 1")[0] == 0
    (run,) = (tmp_path / "runs").iterdir()
    code, out, err = sigma("predict", run, "--text", "he")
    assert (code, out) == (2, "")
    assert "LSTM: continues a sequence only in the forward" in err


def test_indices_of_characters_are_predicted_from_an_array(folder: Path, sigma: Any) -> None:
    codes = np.random.default_rng(0).integers(0, COUNT, (3, 12))
    np.save("codes.npy", codes)
    code, _, err = sigma("predict", folder, "codes.npy", "--output", "found.npy")
    assert code == 0, err
    np.testing.assert_array_equal(np.load("found.npy"), load(folder).predict(codes))
    np.save("codes.npy", codes + COUNT)
    code, out, err = sigma("predict", folder, "codes.npy")
    assert (code, out) == (2, "")
    assert "codes.npy: section 'inputs', row 0: 1" in err, err


def test_the_help_fits_80_columns(folder: Path, sigma: Any) -> None:
    _, out, _ = sigma("predict", "--help")
    assert "--temperature X" in out
    assert max(map(len, out.splitlines())) <= 80


# -- what writes no text -----------------------------------------------------------------------------------------------
def test_a_run_without_text_is_refused(tmp_path: Path, sigma: Any) -> None:
    sigma("run", "iris", "--backend", "numpy", "--set", "hooks.finish.when=epoch reaches 1")
    (run,) = (tmp_path / "runs").iterdir()
    code, out, err = sigma("predict", run, "--text", "To be")
    assert (code, out) == (2, "")
    assert "the network has not learned to predict characters. Train it on text: dataset = 'text'" in err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("lstm(8, sequence=true, direction='bidirectional')", "LSTM: continues a sequence only in the forward"),
        ("transformer_encoder(2)", "attention: continues a sequence only if it is causal"),
        ("layer_norm(axes=2)", r"holds \d+ elements, not \d+\. Only layers that look back alone"),
    ],
)
def test_a_network_that_looks_ahead_is_refused_by_the_layer(pattern: Path, body: str, message: str) -> None:
    with pytest.raises(SigmaNetworkError, match=message):
        trainer(pattern, body).generate("hello")


def test_an_encoder_and_a_decoder_are_refused() -> None:
    tokens = {"inputs": np.zeros((4, 5), np.int32), "said": np.zeros((4, 5), np.int32)}
    encoder = Input(5, section="said", dtype="int32") + Embedding(3, 8)
    decoder = Input(5, dtype="int32") + Embedding(3, 8) + TransformerDecoder(2, memory=encoder)
    made = Environment("two", seed=0).create_trainer(
        data={**tokens, "targets": tokens["inputs"]},
        network=decoder + Output(3) + SoftmaxCrossEntropy(), optimiser="adam", backend="numpy",
    )  # fmt: skip
    with pytest.raises(SigmaNetworkError, match=r"reads inputs, said\. Only .* extend the target by predict:"):
        made.generate("a")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": -1}, r"length must be a whole number from 0 on \(got -1\)"),
        ({"length": 2.5}, r"length must be a whole number from 0 on \(got 2.5\)"),
        ({"temperature": -0.1}, r"temperature must be a number from 0 on \(got -0.1\)"),
        ({"temperature": float("inf")}, r"temperature must be a number from 0 on \(got inf\)"),
        ({"temperature": "hot"}, r"temperature must be a number from 0 on \(got 'hot'\)"),
        ({"seed": -1}, "seed: must be a whole number"),
    ],
)
def test_wrong_settings_are_refused(pattern: Path, settings: Any, message: str) -> None:
    with pytest.raises(SigmaConfigError, match=message):
        trainer(pattern, BODIES["lstm"]).generate("hello", **settings)


@pytest.mark.parametrize("text", [5, None, b"hello", ""])
def test_what_is_no_text_is_refused(pattern: Path, text: Any) -> None:
    with pytest.raises(SigmaDataError, match=r"generate: the text must be a string of at least one character \(got"):
        trainer(pattern, BODIES["lstm"]).generate(text, 2)


def test_unknown_characters_are_named(pattern: Path) -> None:
    with pytest.raises(SigmaDataError, match=r"has not learned 'H', '\\n', 'A', 'B', 'C', 'D', 'E', 'F' \.\.\."):
        trainer(pattern, BODIES["lstm"]).generate("Hello\nABCDEFG")


def test_without_the_room_of_text_its_installation_is_advised() -> None:
    with pytest.raises(SigmaPluginError, match="'characters': sigma-text offers it, .* python -m pip install"):
        Resolver(Catalogue(()))("generator", "default:generator")
    old = {"dataset": "sigma-data:text", "hook": "sigma-hooks:text_sample", "metric": "sigma-hooks:bits_per_character"}
    for kind, name in old.items():
        assert catalogue().resolve(kind, name).distribution == "sigma-text"
        with pytest.raises(SigmaPluginError, match=f"{kind} '.*': sigma-text offers it, but is not installed"):
            Catalogue(()).resolve(kind, name)
