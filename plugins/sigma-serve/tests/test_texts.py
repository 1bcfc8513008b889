"""A network that was trained on a column of texts answers texts, and objects by the name of the column."""

from __future__ import annotations

import json

import pytest

from sigma_kernel import catalogue
from sigma_run import load
from sigma_run.config import build, load as read

TEXT = """
format = 1
[run]
seed = 1
backend = "numpy"
[data]
dataset = "table"
path = "PLACE"
target = "animal"
columns.said = { type = "sigma-text:bag_of_words", most = 20 }
split = { training = 1.0 }
[network]
architecture = 'input(none) + output(2) + softmax_cross_entropy()'
[trainer]
epochs = 20
optimiser = { type = "adam", learning_rate = 0.1 }
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "said.csv").write_text("said,animal\n" + "a bird sings,bird\nthe fish swims,fish\n" * 10)
    text = TEXT.replace("PLACE", (folder / "said.csv").as_posix())
    with build(read(text), catalogue(), folder) as environment:
        environment.run()
    return load(environment.run_folder)


@pytest.mark.parametrize("form", [lambda text: text, lambda text: {"said": text}], ids=["texts", "objects"])
def test_texts_are_answered_like_those_of_the_network(served, reader, form):
    with served(reader) as client:
        rows = [form("birds sing"), form("a fish")]
        answer = client.post("/predict", content=json.dumps(rows), headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    predictions = answer.json()["predictions"]
    assert predictions[1]["label"] == "fish"
    alone = [reader.predict([text])[0].tolist() for text in ("birds sing", "a fish")]
    assert [row["probabilities"] for row in predictions] == alone


def test_texts_among_others_are_refused(served, reader):
    with served(reader) as client:
        answer = client.post("/predict", content='["a", 3]', headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "row 1 is a number, and row 0 a text. Send all rows alike." in answer.text


def test_texts_for_a_network_of_columns_are_refused(client):
    answer = client.post("/predict", content='["a"]', headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "row 0 is a text; the network reads the columns length, kind, width: send objects." in answer.text
