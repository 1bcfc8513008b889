"""Runs on texts: training by words and bags of words, predictions for other files and sentences."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from sigma_data import Arrays, Tabular
from sigma_kernel import Environment, SigmaDataError
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_text import BagOfWordsEncoder, Speeches, Texts, TokensEncoder

pytestmark = pytest.mark.rooms
TEXT = """
format = 1
[run]
name = "animals"
[data]
dataset = "texts"
folder = "animals"
encoder = { type = "bag_of_words", most = 20 }
batch_size = 8
[network]
architecture = "input(none) + output(2) + softmax_cross_entropy()"
[trainer]
epochs = 20
optimiser = { type = "adam", learning_rate = 0.05 }
"""
BIRDS, FISH = ("a bird sings", "the bird flies high", "birds have a beak"), ("a fish swims", "the fish dives deep")


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def animals(tmp_path):
    files = {f"bird/{i}.txt": text for i, text in enumerate(BIRDS * 4)}
    return write(tmp_path / "animals", files | {f"fish/{i}.txt": text for i, text in enumerate(FISH * 4)})


NETWORK = """
input(none, dtype="int32") + embedding({0}, 8, padding=0) + permute(2, 1) + global_average_pool()
+ output({1}) + softmax_cross_entropy()
"""
ADAM = {"type": "adam", "learning_rate": 0.02}


def test_a_run_predicts_other_files_and_sentences(animals, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    environment = Environment("animals", seed=0, folder=tmp_path / "runs")
    data = Texts(animals, encoder=TokensEncoder(most=12, length=5))
    trainer = environment.create_trainer(
        data=data,
        network=NETWORK.format(12, 2), optimiser=ADAM, batch_size=4, backend="numpy",
    )  # fmt: skip
    trainer.fit(epochs=20)
    sentences = ["the birds", "deep fish"]
    assert trainer.classify(sentences).tolist() == ["bird", "fish"]
    assert np.array_equal(trainer.predict(sentences), trainer.predict(data.encode_texts(sentences)))
    write(tmp_path / "new", {"1.txt": sentences[0], "more/2.txt": sentences[1], "3.md": "x"})
    (animals / "bird" / "0.txt").unlink()  # the words are those of the run, not of the folder
    model = load(environment.run_folder)
    assert model.classify(sentences).tolist() == model.classify((*sentences,)).tolist() == ["bird", "fish"]
    assert np.array_equal(model.predict(["", "the birds"]), model.predict([None, "THE birds"]))
    assert main(["predict", str(environment.run_folder), "new", "new/1.txt", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    assert [(row["input"], row["label"]) for row in rows] == [
        ("new/1.txt", "bird"), ("new/more/2.txt", "fish"), ("new/1.txt", "bird"),
    ]  # fmt: skip
    assert main(["predict", str(environment.run_folder), "new", "new/1.txt", "--save", "out.csv"]) == 0
    with open("out.csv") as file:
        saved = [*csv.DictReader(file)]
    assert [(row["file"], row["predicted"]) for row in saved] == [(row["input"], row["label"]) for row in rows]
    assert {"probability_bird", "probability_fish"} <= saved[0].keys()


def test_a_column_of_texts_in_a_table_is_predicted_from_sentences(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = {"said": [*BIRDS, *FISH] * 6, "animal": (["bird"] * 3 + ["fish"] * 2) * 6}
    trainer = (environment := Environment("said", seed=0, folder=tmp_path / "runs")).create_trainer(
        data=Tabular(write_table(rows), target="animal", columns={"said": TokensEncoder(most=30, length=5)}),
        network=NETWORK.format(30, 2), optimiser=ADAM, batch_size=4, backend="numpy",
    )  # fmt: skip
    trainer.fit(epochs=20)
    assert trainer.classify(["the birds", "deep fish"]).tolist() == ["bird", "fish"]
    run = str(environment.run_folder)
    assert main(["predict", run, "--text", "the birds", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert (row["input"], row["label"]) == ("--text", "bird")
    assert row["probabilities"] == trainer.predict(["the birds"])[0].tolist()
    assert main(["predict", run, "--text", "the birds", "--length", "5"]) == 2
    assert "--length is for a text to continue" in capsys.readouterr().err


def write_table(rows):
    path = Path("said.parquet")
    pq.write_table(pa.table(rows), path)
    return path


def test_texts_for_a_network_of_numbers_are_refused():
    trainer = Environment("two", seed=0).create_trainer(
        data=Arrays(inputs=np.ones((4, 2)), targets=[0, 1, 0, 1]),
        network="input(2) + output(2) + softmax_cross_entropy()", optimiser=ADAM, backend="numpy",
    )  # fmt: skip
    trainer.fit(iterations=1)
    with pytest.raises(SigmaDataError, match="'inputs' holds <U6. Use numbers"):
        trainer.predict(["a text"])


def test_a_configuration_trains_on_texts(animals, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "animals.toml").write_text(TEXT)
    assert main(["run", "animals.toml", "--json"]) == 0
    folder = json.loads(capsys.readouterr().out)["folder"]
    assert main(["predict", folder, "animals/fish/0.txt", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert row["label"] == "fish"
    (tmp_path / "animals.toml").write_text(TEXT.replace("most", "mots"))
    assert main(["check", "animals.toml"]) == 2
    assert "data.encoder" in (said := capsys.readouterr().err)
    assert "'most'" in said


@pytest.mark.parametrize(
    ("encoder", "network", "least"),
    [
        (TokensEncoder(most=3000, length=40), NETWORK.format(3000, 3), 0.54),
        (BagOfWordsEncoder(most=3000), "input(none) + output(3) + softmax_cross_entropy()", 0.62),
    ],
)
def test_a_small_network_is_clearly_better_than_the_majority(encoder, network, least):
    trainer = Environment("plays", seed=0).create_trainer(
        data=Speeches(encoder=encoder, split_by="stratified"),
        network=network, optimiser=ADAM, batch_size=32, backend="numpy",
    )  # fmt: skip
    trainer.fit(epochs=5)
    assert trainer.evaluate("validation", {"accuracy": "accuracy"})["accuracy"] > least > 0.44


@pytest.mark.parametrize(
    "layer", ["lstm(6, lengths=tokens)", "attention(2, mask=tokens) + permute(2, 1) + crop(((0, 7),))"]
)
def test_recurrent_layers_and_attention_take_the_indices_as_a_mask_of_padding(layer):
    trainer = Environment("padding", seed=0).create_trainer(
        data=Speeches(encoder=TokensEncoder(most=500, length=8), split={"training": 0.1}),
        network=f"""
        tokens = input(none, dtype="int32")

        tokens + embedding(500, 8) + {layer} + flatten() + output(3) + softmax_cross_entropy()
        """,
        optimiser=ADAM, batch_size=32, backend="numpy",
    )  # fmt: skip
    trainer.fit(iterations=1)
    (name,) = (name for name in trainer.parameters() if "embedding" in name)
    before = np.array(trainer.parameters()[name])
    trainer.fit(iterations=5)
    changed = (np.array(trainer.parameters()[name]) != before).any(axis=1)
    assert not changed[0], "padding has a gradient"
    assert changed[1:].sum() > 100


# -- drafts ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["table", "folder"])
def test_a_draft_trains_on_real_texts_and_is_better_than_the_majority(form, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    listed = Speeches().read()
    if form == "table":
        pq.write_table(pa.table({"said": listed.texts[::3], "play": listed.classes[::3]}), "plays.parquet")
        command = ["init", "plays.parquet", "--text", "said", "--target", "play", "--run"]
    else:
        pairs = enumerate(zip(listed.classes[::3], listed.texts[::3], strict=True))
        write(tmp_path, {f"plays/{play}/{number}.txt": text for number, (play, text) in pairs})
        command = ["init", "plays/", "--run"]
    assert main(command) == 0
    (run,) = (tmp_path / "runs").iterdir()
    metrics = json.loads((run / "summary.json").read_text())["metrics"]
    assert metrics["validation.accuracy"] > 0.5  # 44 % are of one play
    assert main(["data", "show", command[1]]) == 0
    capsys.readouterr()
    assert main(["predict", str(run), "--text", "O Romeo, Romeo, wherefore art thou Romeo?", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert row["label"] == "Romeo and Juliet"


def test_a_number_is_no_text_to_predict_from(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"size": [i / 3 for i in range(40)], "price": [float(i) for i in range(40)]}), "x.parquet")
    environment = Environment("sizes", folder=tmp_path / "runs")
    environment.create_trainer(
        data=Tabular("x.parquet", "price"), network="input(1) + output(1) + squared_difference()",
        optimiser=ADAM, batch_size=4, backend="numpy", epochs=1,
    )  # fmt: skip
    environment.run()
    assert main(["predict", str(environment.run_folder), "--text", "1.5"]) == 2
    assert "bug in Sigma" not in (said := capsys.readouterr().err)
    assert "text" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plays/", "--text", "said"], "--text: is for tables; folders in plays are the classes"),
        (["digits", "--text", "said"], "--text: 'digits' is a recipe"),
        (["plays/", "--target", "play"], "--target: is for tables"),
    ],
)
def test_a_column_of_texts_that_does_not_fit_is_refused(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"plays/a/1.txt": "x", "plays/b/2.txt": "y"})
    assert main(["init", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not [*tmp_path.glob("*.toml")]


# -- running text ------------------------------------------------------------------------------------------------------
def test_a_draft_for_running_text_trains_and_the_run_continues_texts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    verse = "the tiger burns so bright, in the forests of the night.\nwhat immortal hand or eye?\n"
    write(tmp_path / "poems", {f"{i}.txt": verse * 6 for i in range(20)})
    main(["init", "poems/"])
    main(["run", "poems.toml", "--set", "trainer.epochs=6"])
    (run,) = (tmp_path / "runs").iterdir()
    capsys.readouterr()
    text = "the tiger burns so bright, in"
    main(["predict", str(run), "--text", text, "--length", "16", "--temperature", "0"])
    assert capsys.readouterr().out == f"{text} the forests of \n"
    main(["predict", str(run), "--text", text, "--length", "3", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["continuation"] == load(run).generate(text, 3)
    other = write(tmp_path / "other", {"a.txt": verse * 2, "b.txt": verse})
    windows = load(run).read(other)
    assert windows.shape == ((3 * len(verse) + 1) // windows.shape[1], windows.shape[1])
    main(["predict", str(run), "other", "--output", "x.npy"])
    assert np.load("x.npy").shape[:2] == windows.shape


def test_a_run_with_the_byte_pairs_of_a_file_predicts_without_it(animals, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=280, initial_alphabet=alphabet, show_progress=False)
    theirs.train_from_iterator([*BIRDS, *FISH], trainer)
    theirs.save("tokenizer.json")
    encoder = TokensEncoder(by="pairs", file="tokenizer.json", length=8)
    sigma = Environment("animals", seed=0, folder=tmp_path / "runs")
    classes = sigma.create_trainer(
        data=Texts(animals, encoder=encoder), network=NETWORK.format(282, 2), optimiser=ADAM, backend="numpy"
    )
    classes.fit(epochs=1)
    expected = classes.predict(["A fish"])
    Path("tokenizer.json").unlink()
    np.testing.assert_array_equal(load(sigma.run_folder).predict(["A fish"]), expected)
