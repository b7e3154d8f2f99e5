"""LDIF as OpenLDAP prints and reads it."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saltern import ldif

ANSWER = """\
# extended LDIF
#
dn: uid=ada,ou=people,dc=x
cn:: w4Rkw6E=
description: a long line that ldapsearch
  folded
objectClass: inetOrgPerson
objectClass: posixAccount

dn:: dWlkPcOpLGRjPXg=
sn: Quill

# search result
search: 2
result: 0 Success
"""

values = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1)
names = st.text(string.ascii_letters, min_size=1, max_size=8).filter(lambda name: name != "dn")


def test_comments_folds_and_base64_are_read():
    first, second = ldif.parse(ANSWER)
    assert first == (
        "uid=ada,ou=people,dc=x",
        {
            "cn": ["Ädá"],
            "description": ["a long line that ldapsearch folded"],
            "objectClass": ["inetOrgPerson", "posixAccount"],
        },
    )
    assert second == ("uid=é,dc=x", {"sn": ["Quill"]})


@given(st.dictionaries(names, st.lists(values, min_size=1, max_size=3), min_size=1))
def test_what_is_written_is_read_again(attributes):
    text = ldif.added("cn=x", attributes).replace("changetype: add\n", "")
    assert ldif.parse(text) == [("cn=x", attributes)]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        pytest.param("plain text", "a: plain text", id="plain"),
        pytest.param(" blank first", "a:: IGJsYW5rIGZpcnN0", id="blank-first"),
        pytest.param("blank last ", "a:: YmxhbmsgbGFzdCA=", id="blank-last"),
        pytest.param(":colon", "a:: OmNvbG9u", id="colon"),
        pytest.param("<file:///etc/shadow", "a:: PGZpbGU6Ly8vZXRjL3NoYWRvdw==", id="a-file"),
        pytest.param("two\nlines", "a:: dHdvCmxpbmVz", id="line-break"),
    ],
)
def test_what_would_mean_something_else_is_encoded(value, line):
    assert ldif.line("a", value) == line
