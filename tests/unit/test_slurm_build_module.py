"""The builder's and the hosts' side of an artefact, with everything below a folder of the test."""

import errno
import io
import json
import tarfile
from pathlib import Path

import pytest
from salt.exceptions import CommandExecutionError
from saltern import build
from saltern import plan as plans
from support import SCHEMA, example, load

NAME = "24.11.5-0123456789ab"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """slurm_build on a host whose /opt/slurm and /var are folders of the test; its steps are
    simulated."""
    section = plans.resolve(SCHEMA, example(build={"features": ["munge"]})).data["build"]
    views = {
        "build": section,
        "mirror:sources": None,
        "waits:artefact_s": 0,
        "peers:builder": [{"name": "mgmt01", "address": "10.213.0.11"}],
    }
    loaded = load(
        "modules",
        "slurm_build",
        __salt__={
            "saltern.view": lambda path: views[path],
            "saltern.platform": lambda: {"slurm_build": ["gcc"]},
            "pkg.list_pkgs": lambda: {"gcc": "14.2", "libmunge-dev": "0.5"},
            "cmd.run_all": lambda *_, **__: {"retcode": 0, "stdout": "", "stderr": ""},
            "event.send": lambda *_: True,
            "mine.get": lambda *_: {},
        },
        __grains__={"os": "Debian", "os_family": "Debian", "osrelease": "13", "osarch": "amd64"},
    )
    for constant in ("STORE", "SOURCES", "WORK", "LOGS"):
        monkeypatch.setattr(loaded, constant, str(tmp_path / constant.lower()))
    monkeypatch.setattr(build, "ROOT", str(tmp_path / "opt"))
    monkeypatch.setattr(build, "LINK", str(tmp_path / "opt/current"))
    monkeypatch.setattr(loaded, "_lists_known", lambda: True)
    monkeypatch.setattr(loaded.shutil, "chown", lambda *_: None)
    loaded.views = views
    return loaded


def offer(module, tmp_path, files, name=NAME, **changes):
    """An artefact of these files (path: text) as a builder would offer it, by a file URL."""
    archive = tmp_path / "offered.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    sha256 = module.salt.utils.hashutils.get_hash(str(archive), "sha256")
    return {"name": name, "sha256": sha256, "url": archive.as_uri(), "files": [], **changes}


def test_a_wrong_checksum_is_refused_and_the_file_kept_aside(module, tmp_path):
    source = module.views["build"]["sources"]["slurm"]
    Path(module.SOURCES).mkdir()
    (Path(module.SOURCES) / source["file"]).write_text("something else", encoding="utf-8")
    with pytest.raises(
        CommandExecutionError, match=r"build:sources:slurm: found sha256 .* expected"
    ):
        module._source("slurm")
    assert not (Path(module.SOURCES) / source["file"]).exists()
    (kept,) = (Path(module.SOURCES) / "refused").iterdir()
    assert kept.read_text(encoding="utf-8") == "something else"


def test_an_archive_that_the_mirror_lacks_is_named_with_its_address(module, tmp_path):
    module.views["mirror:sources"] = (tmp_path / "mirror").as_uri()
    file = module.views["build"]["sources"]["hwloc"]["file"]
    with pytest.raises(CommandExecutionError, match=f"found no file at file://.*/mirror/{file}"):
        module._source("hwloc")
    assert not list(Path(module.SOURCES).iterdir())


def test_a_plan_without_mirror_and_url_says_what_is_expected(module):
    with pytest.raises(CommandExecutionError, match="expected mirror:sources"):
        module._source("pmix")


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device"), "No space left", id="disk full"
        ),
        pytest.param(
            CommandExecutionError("stopped at slurm-make"), "slurm-make", id="a step failed"
        ),
        pytest.param(KeyboardInterrupt(), "", id="cut"),
    ],
)
def test_a_cut_build_leaves_nothing_finished_and_the_next_starts_clean(
    module, monkeypatch, failure, words
):
    monkeypatch.setattr(module, "_source", lambda name: f"/src/{name}")
    seen = []

    def make(wanted, archives):
        stage = Path(module.WORK) / "stage"
        seen.append(sorted(path.name for path in stage.iterdir()))
        (stage / "half").write_text("", encoding="utf-8")
        (Path(module.STORE) / f"slurm-{wanted['name']}.tar.gz.new").write_text("", encoding="utf-8")
        raise failure

    monkeypatch.setattr(module, "_make_tree", make)
    for _ in range(2):
        with pytest.raises((CommandExecutionError, KeyboardInterrupt), match=words):
            module.build_artefact()
        assert module.needed()
        assert [path.name for path in Path(module.STORE).iterdir()] == [".lock"]
    assert seen == [[], []]


def test_a_second_build_waits_and_then_says_so(module):
    with module._only_one(0), pytest.raises(CommandExecutionError, match="did not end within 0 s"):
        module.build_artefact()


def test_slurm_is_not_built_before_its_parts(module, monkeypatch):
    monkeypatch.setattr(module, "_NVML_HEADERS", ("/nonexistent/nvml.h",))
    with pytest.raises(CommandExecutionError, match="before PMIx exists"):
        module._refuse_without_parts({"features": ["pmix"]})
    with pytest.raises(CommandExecutionError, match=r"before NVML exists: .*libnvidia-ml-dev"):
        module._refuse_without_parts({"features": ["nvml"]})


def test_deploys_and_activates(module, tmp_path):
    module.deploy(offer(module, tmp_path, {f"{NAME}/bin/srun": "x"}))
    assert module.deployed(NAME)
    assert (
        json.loads((tmp_path / "opt" / NAME / "manifest.json").read_text("utf-8"))["name"] == NAME
    )
    assert [path.name for path in (tmp_path / "opt").iterdir()] == [NAME]
    module.activate(NAME)
    assert module.active() == NAME
    with pytest.raises(CommandExecutionError, match="not deployed"):
        module.activate("24.11.5-000000000000")


@pytest.mark.parametrize(
    ("files", "changes", "words"),
    [
        pytest.param(
            {f"{NAME}/bin/srun": "x"}, {"sha256": "0" * 64}, "found sha256", id="checksum"
        ),
        pytest.param({"../evil": "x"}, {}, "Unpacking", id="a path that leaves the folder"),
        pytest.param({"other/bin/srun": "x"}, {}, "Unpacking", id="another tree"),
    ],
)
def test_a_bad_artefact_leaves_nothing(module, tmp_path, files, changes, words):
    with pytest.raises(CommandExecutionError, match=words):
        module.deploy(offer(module, tmp_path, files, **changes))
    assert list((tmp_path / "opt").iterdir()) == []
    assert not (tmp_path / "evil").exists()


def test_only_surplus_is_removed(module, tmp_path):
    module.views["build"]["keep"] = 0
    other = "24.11.5-ffffffffffff"
    for name in (NAME, other):
        module.deploy(offer(module, tmp_path, {f"{name}/bin/srun": "x"}, name=name))
    module.activate(NAME)
    assert module.surplus() == [other]
    with pytest.raises(CommandExecutionError, match="stays"):
        module.remove(NAME)
    module.remove(other)
    assert [path.name for path in (tmp_path / "opt").glob("24*")] == [NAME]


def test_who_waits_in_vain_names_the_builder(module):
    with pytest.raises(CommandExecutionError, match="for the builder mgmt01 to offer"):
        module.offered(0)
