from __future__ import annotations

from hashlib import sha256
from io import StringIO

import pooch
import pytest

from sigma_data import Url
from sigma_data.sources import download
from sigma_kernel import SigmaConfigError, SigmaDataError

CONTENT = bytes(range(256)) * 2000
HASH = sha256(CONTENT).hexdigest()


def fetched(source: Url) -> bytes:
    with source.open() as stream:
        return stream.read()


@pytest.fixture
def url(server, tmp_path):
    """Return a source of /data.bin, which the server has, with the mirror /mirror/data.bin, which it does not have."""
    server.files["/data.bin"] = CONTENT

    def make(path: str = "/data.bin", **settings) -> Url:
        mirrors = tuple(server.address + mirror for mirror in settings.pop("mirrors", ()))
        return Url(server.address + path, settings.pop("sha256", HASH), mirrors, tmp_path / "cache", **settings)

    return make


def test_a_file_is_downloaded_once_and_cached(server, url):
    assert fetched(url()) == fetched(url()) == CONTENT
    assert server.asked == [("/data.bin", None)]


def test_a_file_changed_in_the_cache_is_downloaded_again(server, url, tmp_path):
    fetched(url())
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(b"changed")
    assert fetched(url()) == CONTENT
    assert len(server.asked) == 2


def test_an_interrupted_download_is_resumed(server, url):
    server.cut["/data.bin"] = [131_072, 262_144]
    assert fetched(url()) == CONTENT
    assert server.asked == [("/data.bin", None), ("/data.bin", "bytes=131072-"), ("/data.bin", "bytes=262144-")]


def test_a_later_run_resumes_an_earlier_partial_download(server, url, tmp_path):
    server.cut["/data.bin"] = [131_072]
    with pytest.raises(SigmaDataError, match="cannot be fetched"):
        fetched(url(attempts=1))
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"{HASH}.part"]
    assert fetched(url(attempts=1)) == CONTENT
    assert server.asked[1] == ("/data.bin", "bytes=131072-")
    assert not list((tmp_path / "cache").glob("*.part"))


def test_each_address_is_announced_once_however_often_it_is_tried(server, url, monkeypatch):
    said = StringIO()
    monkeypatch.setattr(pooch.get_logger().handlers[0], "stream", said)
    monkeypatch.setattr(download, "PAUSE", 0.0)
    server.cut["/data.bin"] = [1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(SigmaDataError, match="cannot be fetched"):
            fetched(url(attempts=2))
    assert len(server.asked) == 4
    assert said.getvalue().count(f"Downloading data from '{server.address}/data.bin'") == 1


def test_a_mirror_resumes_a_download_from_another_mirror(server, url):
    server.files["/mirror/data.bin"] = CONTENT
    server.cut["/data.bin"] = [131_072]
    assert fetched(url(mirrors=["/mirror/data.bin"])) == CONTENT
    assert server.asked == [("/data.bin", None), ("/mirror/data.bin", "bytes=131072-")]


def test_a_server_without_range_requests_restarts_the_download(server, url):
    server.cut["/data.bin"], server.ranges = [131_072], False
    assert fetched(url()) == CONTENT
    assert len(server.asked) == 2


def test_a_download_interrupted_by_ctrl_c_is_kept(server, url, tmp_path, monkeypatch):
    def write(self, answer, path, start):
        path.write_bytes(CONTENT[:50_000])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(download.Resumed, "_write", write)
        with pytest.raises(KeyboardInterrupt):
            fetched(url())
    assert fetched(url()) == CONTENT
    assert server.asked[-1] == ("/data.bin", "bytes=50000-")


@pytest.mark.parametrize(
    "left", [b"wrong" * 1000, CONTENT + b"too long", CONTENT[::-1]], ids=["wrong", "long", "other"]
)
def test_a_partial_download_that_does_not_fit_is_discarded(server, url, tmp_path, left):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / f"{HASH}.part").write_bytes(left)
    assert fetched(url()) == CONTENT
    assert server.asked[-1] == ("/data.bin", None)


def test_a_partial_download_that_is_already_complete_is_used(server, url, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / f"{HASH}.part").write_bytes(CONTENT)
    assert fetched(url()) == CONTENT


def test_a_wrong_hash_is_an_error_and_leaves_no_file(server, url, tmp_path):
    with pytest.raises(SigmaDataError, match=r"data\.bin: cannot be fetched(?s:.)*does not match the known hash"):
        fetched(url(sha256="0" * 64))
    assert not list((tmp_path / "cache").iterdir())
    assert len(server.asked) == 1


def test_a_missing_file_is_requested_once_and_then_from_the_mirror(server, url):
    assert fetched(url("/gone.bin", mirrors=["/data.bin"])) == CONTENT
    assert [path for path, _ in server.asked] == ["/gone.bin", "/data.bin"]


def test_a_server_error_is_retried(server, url):
    server.status["/data.bin"] = [503, 500]
    assert fetched(url()) == CONTENT
    assert len(server.asked) == 3


def test_every_address_and_reason_is_reported_if_no_mirror_works(server, url):
    server.status["/data.bin"] = [503] * 3
    with pytest.raises(SigmaDataError, match=r"(?s)/data\.bin: 503 Server Error.*/gone\.bin: the server answers 404"):
        fetched(url(mirrors=["/gone.bin"]))


def test_an_unreachable_server_is_an_error(tmp_path, server):
    source = Url("http://127.0.0.1:9/data.bin", HASH, cache=tmp_path, attempts=2)
    with pytest.raises(SigmaDataError, match=r"http://127\.0\.0\.1:9/data\.bin: cannot be fetched"):
        fetched(source)


def test_a_download_stops_at_the_limit(url, tmp_path):
    with pytest.raises(SigmaDataError, match="larger than 1000 bytes; if that is right, raise `limit`"):
        fetched(url(limit=1000))
    assert not list((tmp_path / "cache").iterdir())


def test_a_folder_that_cannot_be_written_is_named(server, tmp_path, url):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(SigmaDataError, match=r"data\.bin: cannot be kept: (?s:.)*Choose another folder as `cache`"):
        fetched(url())


def test_the_hash_is_required_and_checked_for_its_form():
    with pytest.raises(SigmaConfigError, match="sha256: is missing"):
        Url("https://example.org/a")
    with pytest.raises(SigmaDataError, match="'abc' is not the hash of a file"):
        Url("https://example.org/a", "abc")


@pytest.mark.parametrize("address", ["ftp://example.org/a", "example.org/a", "file:///etc/passwd", "https://"])
def test_only_http_and_https_urls_are_accepted(address):
    with pytest.raises(SigmaDataError, match="is not a URL"):
        Url(address, HASH)
    with pytest.raises(SigmaDataError, match="mirrors: .* is not a URL"):
        Url("https://example.org/a", HASH, (address,))
