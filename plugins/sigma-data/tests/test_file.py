from __future__ import annotations

import os
import sys

import pytest

from sigma_data import File
from sigma_kernel import SigmaDataError


def test_an_uncompressed_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"\x00\r\n\xff")
    with File(path).open() as stream:
        assert stream.read() == b"\x00\r\n\xff"


def test_a_missing_file_suggests_similar_names(tmp_path):
    (tmp_path / "flowers.csv").touch()
    with pytest.raises(SigmaDataError, match=r"flower\.csv: there is no such file\. Did you mean 'flowers\.csv'\?"):
        File(tmp_path / "flower.csv").open()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SigmaDataError, match="Nor is there a folder .*nowhere"):
        File(tmp_path / "nowhere" / "a.csv").open()


def test_a_folder_is_not_a_regular_file(tmp_path):
    with pytest.raises(SigmaDataError, match="is not a regular file"):
        File(tmp_path).open()


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes are not supported")
def test_a_pipe_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SigmaDataError, match="is not a regular file"):
        File(tmp_path / "pipe").open()


def test_an_unreadable_file_is_reported_with_the_reason(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.touch()

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(SigmaDataError, match=r"a\.bin: cannot be read: Permission denied"):
        File(path).open()
