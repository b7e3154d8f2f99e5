"""Unpacking an artefact, with Python's filters and on a Python that has none (Debian 12's own)."""

import io
import stat
import tarfile

import pytest
from support import load


@pytest.fixture(params=[True, False], ids=["filters", "no filters"])
def extract(request, monkeypatch):
    """The module's function; without filters, tarfile is as in Python 3.11.2."""
    module = load("modules", "slurm_build")
    if not request.param:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    return module._extract


def archive(*members):
    """An archive in memory of (name, {attribute: value})."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for name, attributes in members:
            member = tarfile.TarInfo(name)
            for key, value in attributes.items():
                setattr(member, key, value)
            member.size = 4 if member.isfile() else 0
            tar.addfile(member, io.BytesIO(b"text") if member.isfile() else None)
    held.seek(0)
    return tarfile.open(fileobj=held)


def test_a_tree_is_unpacked(extract, tmp_path):
    extract(
        archive(
            ("tree", {"type": tarfile.DIRTYPE, "mode": 0o755}),
            ("tree/bin", {"mode": 0o4775}),
            ("tree/link", {"type": tarfile.SYMTYPE, "linkname": "bin"}),
            ("tree/same", {"type": tarfile.LNKTYPE, "linkname": "tree/bin", "mode": 0o755}),
        ),
        tmp_path,
    )
    assert (tmp_path / "tree/link").read_text() == "text"
    assert (tmp_path / "tree/same").samefile(tmp_path / "tree/bin")
    assert stat.S_IMODE((tmp_path / "tree/bin").stat().st_mode) == 0o755


@pytest.mark.parametrize("members", [
    pytest.param([("../evil", {})], id="parent"),
    pytest.param([("a/../../evil", {})], id="parent within"),
    pytest.param([("out", {"type": tarfile.SYMTYPE, "linkname": "/etc"})], id="absolute link"),
    pytest.param([("out", {"type": tarfile.SYMTYPE, "linkname": ".."})], id="link to the parent"),
    pytest.param([("out", {"type": tarfile.LNKTYPE, "linkname": "../evil"})], id="hard link"),
    pytest.param([("null", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})], id="device"),
])  # fmt: skip
def test_what_would_leave_the_folder_is_refused(extract, tmp_path, members):
    folder = tmp_path / "new"
    folder.mkdir()
    (tmp_path / "evil").write_text("kept")
    with pytest.raises(tarfile.TarError):
        extract(archive(*members), folder)
    assert list(folder.iterdir()) == []
    assert (tmp_path / "evil").read_text() == "kept"
