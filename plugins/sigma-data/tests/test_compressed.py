from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile

import pytest
from hypothesis import given, strategies as st

from sigma_data import Compressed
from sigma_kernel import SigmaDataError

TEXT = b"Sigma trains neural networks.\n" * 1000


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


PACK = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": lambda content: zipped(inside=content)}
each_kind = pytest.mark.parametrize("kind", PACK)


def unpacked(source: Compressed) -> bytes:
    with source.open() as stream:
        return stream.read()


@each_kind
@pytest.mark.parametrize("named", [True, False], ids=["named", "found"])
def test_a_compressed_file_round_trips(held, kind, named):
    assert unpacked(Compressed(held(PACK[kind](TEXT)), kind if named else "auto")) == TEXT


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz"])
def test_compressed_files_may_be_concatenated(held, kind):
    assert unpacked(Compressed(held(PACK[kind](b"one, ") + PACK[kind](b"two")))) == b"one, two"


def test_xz_files_may_be_padded_with_zeros(held):
    assert (
        unpacked(Compressed(held(lzma.compress(b"one, ") + bytes(8) + lzma.compress(b"two") + bytes(4)))) == b"one, two"
    )


@pytest.mark.parametrize("kind", ["gzip", "bz2", "xz"])
def test_doubly_compressed_files_need_two_decompressions(held, kind):
    assert unpacked(Compressed(Compressed(held(PACK["gzip"](PACK[kind](TEXT)))))) == TEXT


@each_kind
def test_a_file_truncated_anywhere_is_reported_as_truncated(held, kind):
    packed = PACK[kind](TEXT)
    for length in {*range(8, len(packed) - 1, max(1, len(packed) // 40)), len(packed) - 1}:
        with pytest.raises(SigmaDataError, match="held: (damaged or cut off after|cannot be unpacked)"):
            unpacked(Compressed(held(packed[:length]), kind))


@each_kind
def test_a_decompression_bomb_stops_at_the_limit(held, kind):
    source = Compressed(held(PACK[kind](bytes(50_000_000))), limit=1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(SigmaDataError, match=r"held: unpacks to more than 1000000 bytes\. If that is right, raise"):
            unpacked(source)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000  # xz has a window of 8 MiB
    finally:
        tracemalloc.stop()


def test_the_limit_itself_is_allowed(held):
    assert len(unpacked(Compressed(held(gzip.compress(bytes(1000))), limit=1000))) == 1000


def test_xz_files_that_need_too_much_memory_are_refused(held):
    greedy = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    with pytest.raises(SigmaDataError, match="Memory usage limit"):
        unpacked(Compressed(held(lzma.compress(TEXT, filters=greedy))))


def test_a_file_that_is_not_compressed_is_refused(held):
    with pytest.raises(SigmaDataError, match="held: is not compressed in a known way"):
        unpacked(Compressed(held(TEXT)))


def test_the_member_of_an_archive_is_named_if_there_are_several(held):
    packed = held(zipped(first=b"1", second=b"2"))
    assert unpacked(Compressed(packed, member="second")) == b"2"
    assert Compressed(packed, member="second").name == "held:second"
    with pytest.raises(SigmaDataError, match="held: holds 2 files: first, second. Name one as `member`"):
        unpacked(Compressed(packed))
    with pytest.raises(SigmaDataError, match="held: holds no 'secund'. Did you mean 'second'\\?"):
        unpacked(Compressed(packed, member="secund"))


def test_a_zip_archive_inside_another_source_is_refused(held):
    with pytest.raises(SigmaDataError, match="held: cannot be unpacked"):
        unpacked(Compressed(Compressed(held(gzip.compress(zipped(inside=TEXT))))))


def test_an_archive_without_files_is_reported(held):
    with pytest.raises(SigmaDataError, match="holds 0 files"):
        unpacked(Compressed(held(zipped())))


def test_a_changed_byte_inside_a_compressed_file_fails_its_checksum(held):
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1
    with pytest.raises(SigmaDataError, match=r"held: .* after \d+ unpacked bytes .*CRC"):
        unpacked(Compressed(held(bytes(packed))))


@given(st.data())
def test_any_change_to_a_compressed_file_causes_only_data_errors(held, told, data):
    kind = data.draw(st.sampled_from(sorted(PACK)))
    packed = bytearray(PACK[kind](TEXT[:300]))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    assert told(
        unpacked, Compressed(held(bytes(packed[: data.draw(st.integers(0, len(packed)))])), limit=10_000)
    ).startswith("held")
