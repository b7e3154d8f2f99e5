"""The authority of Saltern's own servers, judged as a TLS client judges it."""

import datetime
import ssl

import pytest
from saltern import certificates, secret_store

NOW = datetime.datetime.now(datetime.timezone.utc)
NAMES = ["dir01.lab", "dir02.lab", "dir01", "dir02"]


@pytest.fixture(scope="module")
def made():
    ca_key, key = certificates.new_key(), certificates.new_key()
    ca = certificates.authority(ca_key, "Saltern of lab", NOW)
    return {"ca_key": ca_key, "ca": ca, "key": key,
            "server": certificates.server(ca_key, ca, key, NAMES, NOW)}  # fmt: skip


def accepted(made, folder, name):
    """Whether a TLS client that trusts the authority takes this server for that name: a handshake
    in memory."""
    files = {name: folder / name for name in ("ca", "server", "key")}
    for part, path in files.items():
        path.write_text(made[part])
    client = ssl.create_default_context(cafile=str(files["ca"]))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files["server"], files["key"])
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(down, up, server_hostname=name),
        server.wrap_bio(up, down, server_side=True),
    ]
    for end in ends * 3:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError:
            return False
    return ends[0].version() == "TLSv1.3"


@pytest.mark.parametrize("name", NAMES)
def test_a_client_accepts_each_name(made, tmp_path, name):
    assert accepted(made, tmp_path, name)


def test_a_client_refuses_another_name_and_another_authority(made, tmp_path):
    assert not accepted(made, tmp_path, "dir03")
    other = certificates.authority(certificates.new_key(), "Saltern of lab", NOW)
    assert not accepted({**made, "ca": other}, tmp_path, "dir01")


@pytest.mark.parametrize(
    ("change", "fit"),
    [
        pytest.param({}, True, id="as-made"),
        pytest.param({"names": [*NAMES, "dir03"]}, False, id="a-new-server"),
        pytest.param({"key": "new"}, False, id="a-new-key"),
        pytest.param({"ca": "new"}, False, id="a-new-authority"),
        pytest.param({"now": NOW + datetime.timedelta(days=500)}, True, id="half-of-its-time"),
        pytest.param({"now": NOW + datetime.timedelta(days=600)}, False, id="due"),
    ],
)
def test_when_it_is_made_again(made, change, fit):
    key = certificates.new_key() if "key" in change else made["key"]
    ca = made["ca"]
    if "ca" in change:
        ca = certificates.authority(certificates.new_key(), "Saltern of lab", NOW)
    found = certificates.fits(
        made["server"], ca, key, change.get("names", NAMES), change.get("now", NOW)
    )
    assert found is fit


def test_the_store_keeps_what_fits_and_renews_what_does_not(tmp_path):
    store, made = secret_store.Store(str(tmp_path / "secrets")), []

    def make():
        made.append(f"text {len(made)}")
        return made[-1]

    assert store.kept("x.pem", make, lambda _: True) == "text 0"
    assert store.kept("x.pem", make, lambda _: True) == "text 0"
    assert store.kept("x.pem", make, lambda found: found != "text 0") == "text 1"
    assert oct((tmp_path / "secrets/x.pem").stat().st_mode)[-3:] == "600"
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["x.pem"]


def test_a_key_is_a_secret_of_several_lines(tmp_path):
    store = secret_store.Store(str(tmp_path / "secrets"))
    key = store.get("directory_key")
    assert "\n" in key and key == store.get("directory_key")
    assert certificates.is_of(certificates.authority(key, "x", NOW), key)
