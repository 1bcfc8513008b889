"""Texts without classes: packed windows of tokens, their splits, and what networks of tokens write."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from sigma_kernel import Environment, SigmaConfigError, SigmaDataError
from sigma_kernel.contracts import TextGenerator
from sigma_testing import DatasetSuite, GeneratorSuite
from sigma_text import BagOfWordsEncoder, CharacterGenerator, Texts, TokensEncoder
from sigma_text.vocabularies import CharacterVocabulary, TokenVocabulary

TEXTS = [
    "the cat sat on the mat.\n",
    "the dog \u00fcber the caf\u00e9 \U0001f600!\n",
    "a cat, a dog.\n",
    "on and on the mat\n",
] * 5
NETWORK = (
    "input(none, dtype='int32') + embedding({0}, 8) + lstm(16, sequence=true) + output({0}) + softmax_cross_entropy()"
)


def write_texts(folder: Path, texts: list[str], part: str = "") -> Path:
    (folder / part).mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(texts):
        (folder / part / f"{i:02}.txt").write_text(text, encoding="utf-8", newline="")
    return folder


def learn_pairs(texts: list[str], most: int) -> Tokenizer:
    """Return a tokenizer that was trained without any code of this package."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=most, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def read_vocabulary(data: Texts) -> TokenVocabulary:
    part: Any = data["training"]
    return TokenVocabulary.from_plain(json.loads(json.dumps(part.learned["tokens"])))


def flatten(part: Any) -> Any:
    return np.concatenate([part.block(0)["inputs"].ravel(), part.block(0)["targets"][-1, -1:]]).tolist()


class TestTexts(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _texts(self, tmp_path: Path) -> None:
        self.folder = write_texts(tmp_path, TEXTS)

    def make(self) -> Any:
        return Texts(self.folder, context=7)["training"]


class TestTokenGenerator(GeneratorSuite):
    text = "the cat"

    @pytest.fixture(autouse=True)
    def _texts(self, tmp_path: Path) -> None:
        self.folder = write_texts(tmp_path / "texts", TEXTS[:1] * 20)

    def make(self) -> TextGenerator:
        return CharacterGenerator()

    def trainer(self) -> Any:
        data = Texts(self.folder, context=6, encoder=TokensEncoder(by="characters"))
        return train(data, epochs=1)


def train(data: Any, epochs: int) -> Any:
    trainer = Environment("texts", seed=1).create_trainer(
        data=data, network=NETWORK.format(len(data.classes)), optimiser={"type": "adam", "learning_rate": 0.02},
        backend="numpy", batch_size=4,
    )  # fmt: skip
    trainer.fit(epochs=epochs)
    return trainer


# -- windows -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("context", [1, 5, 16])
def test_windows_of_byte_pairs_are_those_of_the_library_with_an_end_between_texts(tmp_path: Path, context: int) -> None:
    split = {"training": 0.8, "validation": 0.2}
    data = Texts(
        write_texts(tmp_path, TEXTS), split=split, split_by="block", context=context,
        encoder=TokensEncoder(by="pairs", most=290, lower=False),
    )  # fmt: skip
    theirs = learn_pairs(TEXTS[:16], 288)
    for part, texts in (("training", TEXTS[:16]), ("validation", TEXTS[16:])):
        stream: list[int] = []
        for encoding in theirs.encode_batch(texts):
            stream += [0, *(number + 2 for number in encoding.ids)] if stream else [i + 2 for i in encoding.ids]
        count = (len(stream) - 1) // context
        inputs, targets = (data[part].block(0)[name] for name in ("inputs", "targets"))
        np.testing.assert_array_equal(inputs, np.array(stream[: count * context]).reshape(count, context))
        np.testing.assert_array_equal(targets, np.array(stream[1 : count * context + 1]).reshape(count, context))
        assert inputs.dtype == np.int32
    assert data.classes[2:] == tuple(theirs.id_to_token(i) for i in range(theirs.get_vocab_size()))
    assert len(data.classes) == 290


@pytest.mark.parametrize("by", ["words", "characters", "pairs"])
def test_tokens_come_back_as_the_texts(tmp_path: Path, by: Any) -> None:
    texts = [text.strip() for text in TEXTS[:4]] if by == "words" else TEXTS[:4]
    encoder = TokensEncoder(by=by, lower=False)
    data = Texts(write_texts(tmp_path, texts), split={"training": 1.0}, split_by="block", context=1, encoder=encoder)
    vocabulary = read_vocabulary(data)
    stream = [*flatten(data["training"])]
    ends = [-1, *(i for i, code in enumerate(stream) if code == 0), len(stream)]
    assert [vocabulary.decode(stream[a + 1 : b]) for a, b in pairwise(ends)] == texts
    assert vocabulary.decode(stream) == "".join(texts) or by == "words"


def test_given_byte_pairs_are_read_by_the_library_from_the_run(tmp_path: Path) -> None:
    theirs = learn_pairs(TEXTS, 280)
    theirs.save(str(tmp_path / "tokenizer.json"))
    encoder = TokensEncoder(by="pairs", file=tmp_path / "tokenizer.json")
    data = Texts(write_texts(tmp_path / "texts", ["The CAT\n"] * 9), context=2, encoder=encoder)
    vocabulary = read_vocabulary(data)
    (tmp_path / "tokenizer.json").unlink()
    assert vocabulary.encode("The CAT") == [number + 2 for number in theirs.encode("The CAT").ids]
    assert len(vocabulary) == len(data.classes) == 282


def test_unknown_tokens_are_1_and_the_encoder_learns_from_the_training_split_alone(tmp_path: Path) -> None:
    texts = write_texts(tmp_path, ["a b a b", "a b", "b z z"])
    data = Texts(texts, split={"training": 0.6, "validation": 0.4}, split_by="block", context=2)
    assert data.classes == ("<end>", "<unknown>", "a", "b")
    assert flatten(data["training"]) == [2, 3, 2, 3, 0, 2, 3]
    assert flatten(data["validation"]) == [3, 1, 1]


# -- files and splits --------------------------------------------------------------------------------------------------
def test_a_single_text_is_cut_in_the_order_of_the_splits(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a" * 60 + "b" * 30 + "c" * 10)
    settings: Any = {"context": 1, "encoder": TokensEncoder(by="characters")}
    split = {"training": 0.6, "validation": 0.3, "test": 0.1}
    data = Texts(tmp_path / "x.txt", split=split, **settings)
    assert [flatten(part) for part in data.values()] == [[2] * 60, [1] * 30, [1] * 10]
    folds = [Texts(tmp_path / "x.txt", fold={"number": i, "of": 5}, **settings) for i in range(5)]
    assert [len(fold["validation"]) for fold in folds] == [19] * 5
    middle = flatten(folds[2]["training"])
    assert (len(middle), middle[40]) == (81, 0)  # an end where the fold was cut out


def test_a_divider_makes_texts_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one<|end|>two two<|end|>\n")
    data = Texts(tmp_path / "x.txt", split={"training": 1.0}, split_by="block", context=1, divider="<|end|>")
    assert [data.classes[i] for i in flatten(data["training"])] == ["one", "<end>", "two", "two"]


@pytest.mark.parametrize("kind", ["zip", "gztar"])
@pytest.mark.parametrize("parts", [("",), ("train", "val")])
def test_an_archive_without_classes_has_the_windows_of_the_folder(
    tmp_path: Path, kind: str, parts: tuple[str, ...]
) -> None:
    for part in parts:
        write_texts(tmp_path / "own", TEXTS, part)
    folder = Texts(tmp_path / "own", context=5)
    expected = {name: flatten(part) for name, part in folder.items()}
    for above in (tmp_path / "own", tmp_path):  # with and without the folder itself
        base = "own" if above == tmp_path else "."
        place = Path(shutil.make_archive(str(tmp_path.parent / f"{tmp_path.name}-packed"), kind, above, base))
        data: Any = Texts(place, context=5)
        assert not data.has_classes
        assert {name: flatten(part) for name, part in data.items()} == expected
        assert data.profile().table == folder.profile().table
        np.testing.assert_array_equal(data.samples(place, (5,)), folder.samples(tmp_path / "own", (5,)))
        assert data.files(place) == []


def test_a_single_folder_is_no_class(tmp_path: Path) -> None:
    write_texts(tmp_path, TEXTS, "class")
    data = Texts(tmp_path, context=5)
    expected = Texts(tmp_path / "class", context=5)
    assert {name: flatten(part) for name, part in data.items()} == {k: flatten(v) for k, v in expected.items()}
    write_texts(tmp_path / "parts", ["a b", "b a"], "train/x")
    write_texts(tmp_path / "parts", ["b b"], "val/x")
    assert {name: flatten(part) for name, part in Texts(tmp_path / "parts", context=1).items()} == {
        "training": [2, 3, 0, 3, 2],
        "validation": [3, 3],
    }


def test_running_text_may_be_far_longer_than_a_text_of_a_class(tmp_path: Path) -> None:
    novel = tmp_path / "novel.txt"
    novel.write_text("It was a dark and stormy night.\n" * 530_000)
    assert novel.stat().st_size > 1 << 24
    assert len(Texts(novel).read_documents().texts[0]) == novel.stat().st_size
    with pytest.raises(SigmaDataError, match=r"novel\.txt: has more than 1000 bytes\. Raise `largest`"):
        Texts(novel, largest=1000).read_documents()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(novel, tmp_path / name / "x.txt")
    novel.unlink()
    with pytest.raises(SigmaDataError, match=r"has more than 16777216 bytes\. Raise `largest`"):
        Texts(tmp_path).read()


def test_folders_of_splits_have_texts_without_classes(tmp_path: Path) -> None:
    write_texts(tmp_path, ["a b", "b a"], "train")
    write_texts(tmp_path, ["b b"], "val")
    (tmp_path / "val" / "x.md").write_text("")
    data = Texts(tmp_path, context=1)
    assert data.names == ("training", "validation")
    assert {name: flatten(part) for name, part in data.items()} == {"training": [2, 3, 0, 3, 2], "validation": [3, 3]}
    assert "1 files are no texts" in str(data["training"].findings((), {}))


def test_samples_are_windows_of_other_texts(tmp_path: Path) -> None:
    data: Any = Texts(write_texts(tmp_path / "own", ["a b c d"] * 9), context=3)
    other = write_texts(tmp_path / "other", ["a z", "b c d a"])
    expected = [[2, 1, 0], [3, 4, 5]]
    assert data.samples(other, (3,)).tolist() == expected
    assert data.samples(other, (3,), None, data["training"].learned).tolist() == expected
    np.save(tmp_path / "x.npy", np.array(expected, np.int32))
    assert data.samples(tmp_path / "x.npy", (3,)).tolist() == expected
    with pytest.raises(SigmaDataError, match=r"other: has 7 tokens; a sample takes 8\. Give a longer text"):
        data.samples(other, (8,))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"context": 500},
            r"split 'training': has \d+ tokens; a window with context = 500 takes 501. Choose a smaller context",
        ),
        ({"context": 0}, "Texts.context: must be at least 1"),
        ({"split_by": "stratified"}, "Texts.split_by: texts have no classes here. Split by record or block"),
        ({"encoder": BagOfWordsEncoder()}, r"Texts.encoder: .* holds texts without classes.*BagOfWordsEncoder has no"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, settings: Any, message: str) -> None:
    folder = write_texts(tmp_path, TEXTS)
    with pytest.raises((SigmaConfigError, SigmaDataError), match=message):
        Texts(folder, **settings)["training"]


def test_texts_that_are_empty_or_not_there_are_refused(tmp_path: Path) -> None:
    for texts in (["", ""], [" \n "], [""]):
        with pytest.raises(
            SigmaDataError, match=r"empty: there is no text to train on, or only blanks\. Give files with text"
        ):
            Texts(write_texts(tmp_path / "empty", texts), split={"training": 1.0})["training"]
    for blank in ("", " \n"):
        (tmp_path / "blank.txt").write_text(blank)
        for data in (Texts(tmp_path / "blank.txt", divider="|"), Texts(tmp_path / "blank.txt")):
            with pytest.raises(SigmaDataError, match=r"blank\.txt: there is no text to train on"):
                data.all_rows()
    half = write_texts(tmp_path / "half", [" ", "a b c"])
    with pytest.raises(SigmaDataError, match=r"half: there is no text to train on"):
        Texts(half, split={"training": 0.5, "validation": 0.5}, split_by="block")["training"]
    with pytest.raises(SigmaDataError, match=r"nowhere: there is no such folder"):
        Texts(tmp_path / "nowhere")["training"]
    mixed = write_texts(tmp_path / "mixed", ["a"], "class")
    (mixed / "x.txt").write_text("b")
    with pytest.raises(
        SigmaDataError, match=r"'x\.txt' is not in the folder of a class, and 'class' is the only folder"
    ):
        Texts(mixed)["training"]


def test_folds_of_folders_of_splits_are_refused(tmp_path: Path) -> None:
    write_texts(tmp_path, ["a b", "b a"], "train")
    write_texts(tmp_path, ["b b"], "val")
    with pytest.raises(SigmaConfigError, match="Texts.fold: the texts have splits already"):
        Texts(tmp_path, fold={"number": 0, "of": 2})["training"]


def test_a_network_of_other_tokens_does_not_read_the_windows(tmp_path: Path) -> None:
    first = Texts(write_texts(tmp_path / "a", ["a b c"] * 9), context=2)["training"]
    other = Texts(write_texts(tmp_path / "b", ["x y"] * 9), context=2)["training"]
    assert first.encode("targets", 5, first.class_names("targets")) is first
    with pytest.raises(SigmaDataError, match="was divided into other tokens than those of the network"):
        other.encode("targets", 5, first.class_names("targets"))
    with pytest.raises(
        SigmaDataError, match=r"has 5 different tokens, and the network predicts 3\. Write embedding\(5"
    ):
        first.encode("targets", 3)


# -- writing -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("by", "pieces"), [("pairs", None), ("words", [" cat", " sat", " on", "."]), ("characters", [*" cagb "])]
)
def test_a_network_of_tokens_writes_what_it_has_learned_and_stops_at_the_end(
    tmp_path: Path, by: Any, pieces: list[str] | None
) -> None:
    text = "the cat sat on." if by == "words" else "the cagb \u00fc\U0001f600."
    folder = write_texts(tmp_path / "texts", [text] * 30)
    data = Texts(folder, context=8, encoder=TokensEncoder(by=by, most=260 if by == "pairs" else 99, lower=False))
    trainer = train(data, 40)
    assert trainer.generate("the", 99, temperature=0) == text.removeprefix("the")
    assert trainer.generate("the", 99, temperature=0.2, seed=5) == text.removeprefix("the")
    trainer.prepare()
    evaluator, steps = trainer.view.evaluator_and_steps()
    streamed = [*CharacterGenerator().continuation(steps, evaluator, "the", 6, 0)]
    assert all(streamed)
    assert streamed[: len(pieces or ())] == (pieces or [])


def test_pieces_are_whole_characters_however_tokens_divide_them() -> None:
    theirs = learn_pairs(["x"], 257)  # bytes alone
    encoder = TokensEncoder(by="pairs", lower=False)
    vocabulary = TokenVocabulary(encoder, {"tokenizer": json.loads(theirs.to_str()), "length": 1})
    text = "a\u00fc\u20ac\U0001f600b"
    codes = vocabulary.encode(text)
    assert len(codes) == len(text.encode())
    assert [*vocabulary.stream(vocabulary.encode("z"), iter(codes))] == [*text]


def test_words_are_separated_as_in_prose() -> None:
    state: dict[str, Any] = {"tokens": [], "length": 9}
    words = ["he", "said", ":", "“", "don", "'", "t", "(", "ever", ")", "go", ",", "well", "-", "known", "!"]
    vocabulary = TokenVocabulary(TokensEncoder(), {**state, "tokens": [*dict.fromkeys(words)]})
    text = "he said: \u201cdon't (ever) go, well-known!"
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert (
        "".join(vocabulary.stream(vocabulary.encode("go"), iter(vocabulary.encode(", well-known")))) == ", well-known"
    )
    assert vocabulary.decode([1, 2]) == "\ufffd he"


def test_a_text_without_tokens_and_damaged_checkpoints_are_refused() -> None:
    vocabulary = TokenVocabulary(TokensEncoder(), {"tokens": ["a"], "length": 1})
    with pytest.raises(SigmaDataError, match=r"generate: the text ' ' has no token\. Give one with a word"):
        vocabulary.encode(" ")
    plain = vocabulary.to_plain()
    damages: Any = ({"state": {}}, {"encoder": {}}, {"encoder": {"type": "tokens", "by": "x"}}, {"state": None})
    for damage in damages:
        with pytest.raises(SigmaDataError, match="tokens: their encoder is damaged in the checkpoint"):
            TokenVocabulary.from_plain({**plain, **damage})
    assert CharacterVocabulary("ab").decode([1, 0]) == "ba"


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_an_unknown_token_is_never_written(tmp_path: Path, temperature: float) -> None:
    (tmp_path / "x.txt").write_text("a b c d e " * 30)
    data = Texts(tmp_path / "x.txt", context=4, encoder=TokensEncoder(most=3))
    trainer = train(data, 3)
    targets = data["training"].block(0)["targets"]
    assert np.bincount(targets.ravel()).argmax() == 1
    words = trainer.generate("a", 40, temperature).split()
    assert {*words} == {"a"}
