"""The machine's apt sources become the hosts' sources."""

import pytest
from saltern_lab import aptsources
from saltern_lab.aptsources import Source
from saltern_lab.errors import LabError

DEB822 = """\
Types: deb
# a comment
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb deb-src
URIs: https://security.example/debian-security
Suites: bookworm-security
Components: main contrib

Types: deb
URIs: http://other.example/node
Suites: nodistro
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
"""
ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/archive.gpg] http://archive.example/debian bookworm main # x
deb-src http://archive.example/debian bookworm main
deb http://vendor.example/apt bookworm stable
"""  # noqa: E501
PARTS = ["main", "non-free"]


def test_deb822_is_read_by_paragraph():
    found = aptsources.parse_deb822(DEB822)
    assert found[0] == Source(
        "http://archive.example/debian", "bookworm", ("main",), "/usr/share/keyrings/archive.gpg"
    )
    assert [(s.uri, s.suite) for s in found[1:]] == [
        ("http://archive.example/debian", "bookworm-updates"),
        ("https://security.example/debian-security", "bookworm-security"),
        ("http://other.example/node", "nodistro"),
    ]


def test_one_line_options_are_read():
    found = aptsources.parse_one_line(ONE_LINE)
    assert found == [
        Source(
            "http://archive.example/debian",
            "bookworm",
            ("main",),
            "/usr/share/keyrings/archive.gpg",
        ),
        Source("http://vendor.example/apt", "bookworm", ("stable",)),
    ]


def test_inline_key_is_left_to_the_archive_keyring():
    text = "Types: deb\nURIs: http://a.example/d\nSuites: bookworm\nComponents: main\n"
    text += "Signed-By:\n -----BEGIN\n .\n x\n"
    assert aptsources.parse_deb822(text)[0].signed_by is None


@pytest.mark.parametrize("name", ["debian.sources", "sources.list"])
def test_files_are_read_by_their_kind(name):
    text = DEB822 if name.endswith(".sources") else ONE_LINE
    assert (
        aptsources.parse_files({name: text, "old.list.disabled": ONE_LINE})[0].suite == "bookworm"
    )


def test_suite_is_swapped_and_third_parties_left_out():
    sources = aptsources.parse_files({"a.sources": DEB822, "b.list": ONE_LINE})
    found = aptsources.translate(sources, "bookworm", "trixie", PARTS)
    assert [(s.uri, s.suite, s.components) for s in found] == [
        ("http://archive.example/debian", "trixie", ("main", "non-free")),
        ("http://archive.example/debian", "trixie-updates", ("main", "non-free")),
        ("https://security.example/debian-security", "trixie-security", ("main", "non-free")),
    ]


def test_no_archive_is_a_sentence():
    with pytest.raises(LabError, match="no http archive of Debian bookworm"):
        aptsources.translate(
            [Source("http://v.example", "stable-x", ("main",))], "bookworm", "trixie", PARTS
        )


def test_hosts_see_http_the_machine_fetches_as_it_does():
    source = Source("https://s.example/debian/", "trixie", ("main",))
    assert aptsources.render([source]) == "deb http://s.example/debian trixie main\n"
    assert aptsources.render([source], "deb-src", plain=False) == (
        "deb-src https://s.example/debian/ trixie main\n"
    )


def test_settings_of_validity_are_kept_and_proxies_are_not():
    dump = (
        'Acquire::Check-Valid-Until "false";\nAcquire::Languages "none";\n'
        'Acquire::http::Proxy "http://p:1";\n'
        'Acquire::GzipIndexes "true";\nAPT::Architecture "amd64";\n'
    )
    assert aptsources.kept_settings(dump) == [
        'Acquire::Check-Valid-Until "false";',
        'Acquire::Languages "none";',
    ]
    assert aptsources.proxy(dump) == "http://p:1"
    assert aptsources.proxy('Acquire::http::Proxy "DIRECT";\n') is None
