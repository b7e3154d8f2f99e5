"""LBNL NHC from an archive. The real one is in no registry: a simulated archive with its layout."""

import hashlib
import os
import shutil
import subprocess
import tarfile

import pytest
from salt.exceptions import CommandExecutionError
from support import ROOT, load

CONFIGURE = '#!/bin/sh\necho "$@" > configured\n'
NHC = "#!/bin/sh\nexit 0\n"


class Site:
    """A node and a mirror of one archive."""

    def __init__(
        self, tmp_path, *, makefile="install:\n\tmkdir -p {root}/sbin && cp nhc {root}/sbin/nhc\n"
    ):
        self.root = tmp_path
        inside = tmp_path / "lbnl-nhc-1.4.3"
        inside.mkdir()
        (inside / "configure").write_text(CONFIGURE)
        (inside / "configure").chmod(0o755)
        (inside / "nhc").write_text(NHC)
        (inside / "Makefile").write_text(makefile.format(root=tmp_path))
        self.mirror = tmp_path / "mirror.tar.xz"
        with tarfile.open(self.mirror, "w:xz") as tar:
            tar.add(inside, "lbnl-nhc-1.4.3")
        digest = hashlib.sha256(self.mirror.read_bytes()).hexdigest()
        self.source = {"version": "1.4.3", "file": "lbnl-nhc-1.4.3.tar.xz", "sha256": digest}
        self.source |= {"url": None, "subdirectory": "."}
        self.fetched = []
        self.module = load("modules", "nhc_lbnl", __salt__=self._salt())
        self.module._SOURCES = str(tmp_path / "nhc")
        self.module._STAMP = str(tmp_path / "nhc/installed.json")
        self.module._PROGRAM = str(tmp_path / "sbin/nhc")

    def _salt(self):
        view = {"health:source": self.source, "mirror:sources": "http://mirror/sources/"}
        return {
            "saltern.view": lambda path: view[path],
            "cp.get_url": self._get,
            "cmd.run_all": self._run,
        }

    def _get(self, url, path):
        self.fetched.append(url)
        return shutil.copy(self.mirror, path)

    def _run(self, command, cwd, **_):
        ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
        return {"retcode": ran.returncode, "stdout": ran.stdout, "stderr": ran.stderr}

    def state(self, test=False):
        salt = {f"nhc_lbnl.{name}": getattr(self.module, name) for name in ("pending", "install")}
        return load("states", "nhc_lbnl", __salt__=salt, __opts__={"test": test})


def test_it_is_installed_once_simulated(tmp_path):
    site = Site(tmp_path)
    dry = site.state(test=True).installed("LBNL NHC")
    assert (dry["result"], dry["changes"]) == (None, {"version": "none -> 1.4.3"})
    assert site.fetched == []
    done = site.state().installed("LBNL NHC")
    assert (done["result"], done["changes"]) == (True, {"version": "none -> 1.4.3"})
    assert site.fetched == ["http://mirror/sources/lbnl-nhc-1.4.3.tar.xz"]
    again = site.state().installed("LBNL NHC")
    assert (again["result"], again["changes"]) == (True, {})
    os.unlink(tmp_path / "sbin/nhc")
    assert site.state().installed("LBNL NHC")["changes"], "it is there again"


def test_another_file_than_the_plans_is_not_unpacked_simulated(tmp_path):
    site = Site(tmp_path)
    site.source["sha256"] = "0" * 64
    ret = site.state().installed("LBNL NHC")
    assert ret["result"] is False
    assert f"expected {'0' * 64}" in ret["comment"]
    assert not (tmp_path / "sbin").exists()


def test_what_the_installation_says_is_told_simulated(tmp_path):
    site = Site(tmp_path, makefile="install:\n\techo no space left >&2; exit 1\n")
    with pytest.raises(CommandExecutionError, match="no space left"):
        site.module.install()
    assert site.module.pending()


def test_an_installation_without_a_program_is_none_simulated(tmp_path):
    site = Site(tmp_path, makefile="install:\n\ttrue\n")
    with pytest.raises(CommandExecutionError, match="left no"):
        site.module.install()


def test_our_checks_for_lbnl_nhc_pass_findings_on_simulated(tmp_path):
    """The bash functions of saltern.nhc, with NHC's own `die` simulated."""
    text = (ROOT / "salt/p5_environment/files/saltern.nhc").read_text("utf-8")
    checker = tmp_path / "node_health"
    text = text.replace("/usr/lib/saltern/node_health", str(checker))
    finding = '{"node": "n", "checks": [{"finding": "the clock is 900 ms off", "seconds": 0.1}]}'
    script = f'function die() {{ shift; echo "died: $*"; }}\n{text}\ncheck_clock_offset 500'
    for status, said in ((1, "died: check_clock_offset:  the clock is 900 ms off\n"), (0, "")):
        checker.write_text(f"#!/bin/sh\necho '{finding}'\nexit {status}\n")
        checker.chmod(0o755)
        ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (status, said)
