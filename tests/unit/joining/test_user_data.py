"""User-data that brings up a minion."""

import base64
import re
import subprocess

import pytest
import yaml
from saltern import user_data

# As PEM, with what a shell would take for its own; in two parts, so that no key stands here.
ARMOUR = "-----{} RSA " + "PRIVATE KEY-----"
PRIVATE = f"{ARMOUR.format('BEGIN')}\nMIIE'$(id)`x`\n{ARMOUR.format('END')}\n"
PUBLIC = "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"


def written(**own):
    return user_data.files("salt.site.example", "aa:bb", **own)


def preseeded(form, install=None):
    files = written(minion_id="node042", key=(PRIVATE, PUBLIC))
    return user_data.text(form, files, "Debian", install)


def root_after(script, tmp_path):
    """Run the script for real, with its paths moved and Salt and systemd left out."""
    moved = script.replace("/etc/salt", f"{tmp_path}/etc/salt")
    moved = re.sub(r"^(systemctl|apt-get|dnf) .*$", "", moved, flags=re.M)
    subprocess.run(["sh", "-c", moved], check=True)
    return tmp_path / "etc/salt"


def test_the_script_lays_out_a_minion(tmp_path):
    salt = root_after(preseeded("script"), tmp_path)
    conf = yaml.safe_load((salt / "minion.d/saltern.conf").read_text())
    assert conf == {"master": "salt.site.example", "master_finger": "aa:bb", "id": "node042"}
    assert (salt / "pki/minion/minion.pem").read_text() == PRIVATE
    assert (salt / "pki/minion/minion.pub").read_text() == PUBLIC + "\n"


def test_nobody_else_can_read_the_key_or_the_token(tmp_path):
    files = written(key=(PRIVATE, PUBLIC), token=("saltern_join_token", "t0ken"))
    salt = root_after(user_data.text("script", files, "Debian", []), tmp_path)
    for path in salt.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_an_image_s_minion_takes_its_host_s_short_name_and_the_token(tmp_path):
    files = written(token=("saltern_join_token", "t0ken"))
    salt = root_after(user_data.text("script", files, "Debian", []), tmp_path)
    conf = yaml.safe_load((salt / "minion.d/saltern.conf").read_text())
    assert conf["minion_id_remove_domain"] is True and "id" not in conf
    token = yaml.safe_load((salt / "minion.d/saltern_join_token.conf").read_text())
    assert token == {
        "autosign_grains": ["saltern_join_token"],
        "grains": {"saltern_join_token": "t0ken"},
    }


def test_cloud_init_is_yaml_with_the_same_files(tmp_path):
    text = preseeded("cloud-init")
    assert text.startswith("#cloud-config\n")
    data = yaml.safe_load(text)
    assert {entry["path"]: entry["content"] for entry in data["write_files"]} == written(
        minion_id="node042", key=(PRIVATE, PUBLIC)
    )
    assert {entry["permissions"] for entry in data["write_files"]} == {"0600"}
    assert data["runcmd"][0] == "apt-get install -y salt-minion"
    assert data["runcmd"][-1] == "systemctl restart salt-minion"


def test_kickstart_and_preseed_hold_the_script():
    script = preseeded("script")
    assert preseeded("kickstart") == f"%post\n{script}%end\n"
    packed = re.search(r"echo (\S+) \| base64 -d \| sh'\n$", preseeded("preseed"))[1]
    assert base64.b64decode(packed).decode() == script


@pytest.mark.parametrize(("name", "word"), [("Ubuntu", "apt-get"), ("Rocky", "dnf")])
def test_the_system_s_own_package_command(name, word):
    assert word in user_data.text("script", written(minion_id="n1"), name, None)


def test_a_site_s_own_way_to_the_minion():
    text = preseeded("script", ["curl -o /etc/apt/sources.list.d/salt.sources http://mirror/x"])
    assert "http://mirror/x" in text and "apt-get" not in text
