from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, strategies as st

from sigma_data import LinesReader
from sigma_kernel import SigmaDataError

LINES = st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), min_size=1))


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_lines_are_read_without_their_ends(held, lines, end, encoding):
    content = "".join(line + end for line in lines).encode(encoding)
    reader = LinesReader(encoding if encoding == "utf-16" else "utf-8-sig")
    assert reader.read(held(content))["lines"].tolist() == lines


def test_blank_lines_are_skipped_and_the_last_line_may_lack_its_end(held):
    assert LinesReader().read(held(b"\none\n \t\n two\nthree"))["lines"].tolist() == ["one", " two", "three"]


def test_one_long_line_does_not_widen_every_row(held):
    content = b"x" * 500_000 + b"\n" + b"y\n" * 1000
    tracemalloc.start()
    try:
        assert len(LinesReader().read(held(content))["lines"]) == 1001
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_line_that_is_too_long_is_named(held):
    assert len(LinesReader(longest=5).read(held(b"12345\n12345"))["lines"]) == 2
    with pytest.raises(SigmaDataError, match="held:2: the line has more than 5 characters"):
        LinesReader(longest=5).read(held(b"12345\n123456\n"))


def test_undecodable_text_is_reported_with_a_remedy(held):
    with pytest.raises(SigmaDataError, match=r"held:1: .* not valid utf-8 .* such as 'latin-1'"):
        LinesReader().read(held("gr\u00fcn\n".encode("latin-1")))
    assert LinesReader("latin-1").read(held("gr\u00fcn\n".encode("latin-1")))["lines"].tolist() == ["gr\u00fcn"]


def test_an_unknown_encoding_is_reported(held):
    with pytest.raises(SigmaDataError, match="encoding: there is no 'utf-9'"):
        LinesReader("utf-9").read(held(b""))
