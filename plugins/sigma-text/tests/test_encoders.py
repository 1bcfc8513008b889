"""Encoders of texts: words, characters and byte pairs as indices, and bags of words."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from sigma_kernel import Encoder, SigmaConfigError, SigmaDataError, SigmaPluginError
from sigma_testing import EncoderSuite
from sigma_text import BagOfWordsEncoder, TokensEncoder

POEM = ["Tyger Tyger, burning bright,", "In the forests of the night;", "What immortal hand or eye", "the night"]


class _Texts(EncoderSuite):
    def column(self) -> Any:
        return pa.array([*POEM, None, "", "the \u00e9\U0001f600 DON'T"])

    def unseen(self) -> Any:
        return pa.array(["zebra \u4e16\u754c"])


class TestWords(_Texts):
    def make(self) -> Encoder:
        return TokensEncoder(most=9)


class TestCharacters(_Texts):
    def make(self) -> Encoder:
        return TokensEncoder(by="characters", length=12, lower=False)


class TestPairs(_Texts):
    def make(self) -> Encoder:
        return TokensEncoder(by="pairs", most=300)


class TestCounts(_Texts):
    def make(self) -> Encoder:
        return BagOfWordsEncoder(weights="counts")


class TestTfIdf(_Texts):
    def make(self) -> Encoder:
        return BagOfWordsEncoder(most=5)


def encode(encoder, train, *more):
    state = encoder.fit([pa.array(train)])
    return encoder.apply(pa.array([*(more or train)]), state).tolist()


# -- words and characters ----------------------------------------------------------------------------------------------
def test_words_have_indices_by_frequency_then_by_alphabet_and_padding_is_0_at_the_end():
    state = TokensEncoder().fit([pa.array(["b a a", "c a, b"])])
    assert state == {"tokens": ["a", "b", ",", "c"], "length": 4}
    assert encode(TokensEncoder(), ["b a a", "c a, b"]) == [[3, 2, 2, 0], [5, 2, 4, 3]]


def test_unknown_words_are_1_and_long_texts_are_cut_off():
    assert encode(TokensEncoder(length=2), ["a b"], "b z a", "z") == [[3, 1], [1, 0]]


def test_most_counts_padding_and_unknown_words_so_that_an_embedding_of_that_size_takes_all_indices():
    encoder = TokensEncoder(most=4)
    state = encoder.fit([pa.array(["a a a b b c d"])])
    assert state["tokens"] == ["a", "b"]
    assert encoder.size(state) == 4
    assert encoder.apply(pa.array(["d c b a"]), state).tolist() == [[1, 1, 3, 2, 0, 0, 0]]


@pytest.mark.parametrize("text", [None, "", " \t\n\u00a0\u3000"])
def test_a_text_without_words_is_one_unknown_token_so_that_no_mask_is_empty(text):
    assert encode(TokensEncoder(length=3), ["a b"], "a", text) == [[2, 0, 0], [1, 0, 0]]


def test_punctuation_and_case_divide_and_join_words():
    words = TokensEncoder().fit([pa.array(["Don't STOP\u2014na\u00efve\u2003e\u0301te\u0301_4x"])])["tokens"]
    assert sorted(words) == sorted(["don", "'", "t", "stop", "\u2014", "na\u00efve", "e\u0301te\u0301", "_", "4x"])
    assert "STOP" in TokensEncoder(lower=False).fit([pa.array(["STOP"])])["tokens"]


def test_characters_are_tokens_blanks_included():
    encoder = TokensEncoder(by="characters", lower=False)
    assert encode(encoder, ["a b\U0001f600a", "a"]) == [[2, 3, 4, 5, 2], [2, 0, 0, 0, 0]]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), min_size=1, max_size=9))
def test_characters_are_restored_from_their_indices(texts):
    encoder = TokensEncoder(by="characters", lower=False, length=9)
    if not any(texts):
        with pytest.raises(SigmaDataError, match="no row has a text. Leave the column out"):
            encoder.fit([pa.array(texts)])
        return
    state = encoder.fit([pa.array(texts)])
    names = ["", "", *state["tokens"]]
    assert ["".join(names[i] for i in row) for row in encoder.apply(pa.array(texts), state)] == texts


def test_the_length_is_what_99_percent_of_the_texts_do_not_exceed():
    few, many = ["a " * 3] * 98 + ["a " * 50] * 2, ["a " * 3] * 99 + ["a " * 50]
    assert TokensEncoder().fit([pa.array(few)])["length"] == 50
    assert TokensEncoder().fit([pa.array(many)])["length"] == 3


def test_numbers_dates_and_dictionaries_are_their_words():
    for column in (pa.array([12, 7]), pa.array(["12", "7"]).dictionary_encode()):
        assert TokensEncoder().fit([column])["tokens"] == ["12", "7"]


# -- byte pairs --------------------------------------------------------------------------------------------------------
def test_byte_pairs_are_those_of_the_library_and_every_text_has_some():
    encoder = TokensEncoder(by="pairs", most=270, length=40)
    state = encoder.fit([pa.array(POEM * 3)])
    from tokenizers import Tokenizer

    library = Tokenizer.from_str(json.dumps(state["tokenizer"]))
    for text in (*POEM, "\u4e16\u754c quiz"):
        (row,) = encoder.apply(pa.array([text]), state)
        ids = library.encode(text.lower()).ids[:40]
        assert row.tolist() == [i + 2 for i in ids] + [0] * (40 - len(ids))
    assert encoder.size(state) == 270
    assert len(library.encode("the night").ids) < len("the night")


def test_byte_pairs_of_a_file_are_used_as_they_are(tmp_path):
    learned = TokensEncoder(by="pairs", most=280).fit([pa.array(POEM)])["tokenizer"]
    padded = {**learned, "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(padded))
    state = TokensEncoder(by="pairs", file=tmp_path / "tokenizer.json", length=9).fit([pa.array(["other words"])])
    assert state == {"tokenizer": learned, "length": 9}


def test_byte_pairs_of_a_file_keep_upper_case(tmp_path):
    encoder = TokensEncoder(by="pairs", most=280, lower=False, length=5)
    state = encoder.fit([pa.array(POEM)])
    (tmp_path / "t.json").write_text(json.dumps(state["tokenizer"]))
    given = TokensEncoder(by="pairs", file=tmp_path / "t.json", length=5)
    texts = pa.array(["TYGER", "tyger"])
    assert given.apply(texts, given.fit([texts])).tolist() == encoder.apply(texts, state).tolist()
    assert len(np.unique(encoder.apply(texts, state), axis=0)) == 2


def test_byte_pairs_are_the_same_in_every_process():
    code = (
        "import hashlib, json, pyarrow as pa; from sigma_text import TokensEncoder; "
        f"s = TokensEncoder(by='pairs', most=400).fit([pa.array({POEM!r} * 9)]); print(json.dumps(s))"
    )
    assert len({subprocess.check_output([sys.executable, "-c", code]) for _ in range(3)}) == 1


def test_the_library_is_imported_on_first_use():
    code = (
        "import sys, pyarrow as pa; from sigma_text import TokensEncoder; e = TokensEncoder(); "
        "e.apply(pa.array(['a']), e.fit([pa.array(['a'])])); print('tokenizers' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_without_the_library_byte_pairs_name_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(SigmaPluginError, match=r"byte pairs: needs tokenizers .* pip install tokenizers"):
        TokensEncoder(by="pairs").fit([pa.array(POEM)])


@pytest.mark.parametrize("content", ["", "{}", "[" * 5000, '{"model": {"type": "BPE"}}', "\0\xff"])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, content):
    (tmp_path / "t.json").write_text(content, encoding="latin-1")
    with pytest.raises(SigmaDataError, match=r"t\.json: is no tokenizer\.json: .* Save it anew"):
        TokensEncoder(by="pairs", file=tmp_path / "t.json").fit([pa.array(POEM)])


def test_a_file_that_is_missing_or_too_large_is_refused(tmp_path):
    with pytest.raises(SigmaDataError, match="there is no such file"):
        TokensEncoder(by="pairs", file=tmp_path / "t.json").fit([pa.array(POEM)])
    with (tmp_path / "t.json").open("wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(SigmaDataError, match=r"has more than 64 MiB. Is this a tokenizer\.json"):
        TokensEncoder(by="pairs", file=tmp_path / "t.json").fit([pa.array(POEM)])


def test_a_damaged_saved_tokenizer_is_refused():
    with pytest.raises(SigmaDataError, match=r"the saved tokenizer is damaged: .* train again"):
        TokensEncoder(by="pairs").apply(pa.array(["a"]), {"tokenizer": {"version": "1.0"}, "length": 3})


# -- bags of words -----------------------------------------------------------------------------------------------------
def test_counts_and_presence_of_the_most_frequent_words():
    texts = ["a b a", "b c", None]
    assert encode(BagOfWordsEncoder(weights="counts", most=2), texts, "a a c", "b") == [[2, 0], [0, 1]]
    assert encode(BagOfWordsEncoder(weights="presence", most=2), texts, "a a c", None) == [[1, 0], [0, 0]]


def test_tf_idf_is_the_closed_form():
    encoder = BagOfWordsEncoder()
    texts = ["a b a", "b c", "b b d"]
    state = encoder.fit([pa.array(texts[:2]), pa.array(texts[2:])])
    assert (state["tokens"], state["texts"], state["rows"]) == (["b", "a", "c", "d"], [3, 1, 1, 1], 3)
    rare = np.log(4 / 2) + 1
    expected = np.array([[1, 2 * rare, 0, 0], [1, 0, rare, 0], [2, 0, 0, rare]])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.apply(pa.array(texts), state), expected, rtol=1e-15)
    assert encoder.names("x", state) == ("x b", "x a", "x c", "x d")


# -- what is wrong -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [TokensEncoder, BagOfWordsEncoder])
def test_values_that_are_no_text_are_refused_by_row(make):
    with pytest.raises(SigmaDataError, match=r"b'\\xff' is no text. Correct it, or leave the row out") as caught:
        make().fit([pa.array([b"good"]), pa.array([b"too", b"\xff"])])
    assert caught.value.row == 2


@pytest.mark.parametrize("make", [TokensEncoder, BagOfWordsEncoder])
def test_a_column_without_texts_is_refused(make):
    for columns in ([], [pa.array(["", None])]):
        with pytest.raises(SigmaDataError, match="no row has a text. Leave the column out"):
            make().fit(columns)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "letters"}, r"by: must be 'words' or 'characters' or 'pairs'"),
        ({"most": 2}, "most: must be at least 3"),
        ({"length": 0}, "length: must be at least 1"),
        ({"by": "pairs", "most": 257}, r"most: must be at least 258 for byte pairs.*got 257"),
        ({"file": "tokenizer.json"}, r"file: is for by = 'pairs' \(got 'words'\)"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(SigmaConfigError, match=message):
        TokensEncoder(**settings)
