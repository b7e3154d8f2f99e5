"""From what a server has to what the plan wants, entry by entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saltern import directory_entries as entries
from saltern import ldif
from saltern.directory_entries import Entry

DN = "uid=ada,ou=people,dc=x"


def applied(record, there):
    """What ldapmodify makes of a record: a small model of RFC 4511's add, delete and replace."""
    head, *rest = record.rstrip("\n").split("\n")
    (dn, _), kind = ldif.parse(head + "\n")[0], rest[0].removeprefix("changetype: ")
    key = entries.dn_key(dn)
    after = {name: dict(attributes) for name, attributes in there.items()}
    if kind == "delete":
        del after[key]
        return after
    if kind == "add":
        after[key] = ldif.parse("\n".join([head, *rest[1:]]))[0][1]
        return after
    for part in "\n".join(rest[1:]).split("\n-"):
        lines = part.strip("\n").split("\n")
        if lines == [""]:
            continue
        action, name = lines[0].split(": ")
        new = ldif.parse("\n".join(["dn: x", *lines[1:]]))[0][1].get(name, [])
        old = after[key].get(name, [])
        if action == "delete":
            assert all(value in old for value in new), "no such attribute (16)"
            old = [value for value in old if value not in new]
        elif action == "add":
            assert not set(old) & set(new), "type or value exists (20)"
            old = [*old, *new]
        else:
            old = new
        after[key][name] = old
    return after


@pytest.mark.parametrize(
    ("entry", "have", "said"),
    [
        pytest.param(Entry(DN, {"cn": ("Ada",)}), {"cn": ["Ada"]}, [], id="already-so"),
        pytest.param(
            Entry(DN, {"cn": ("Ada",)}),
            {"cn": ["Ida"], "mail": ["own@x"]},
            [f"change {DN}: cn"],
            id="not-given-is-left-alone",
        ),
        pytest.param(
            Entry(DN, {"sshPublicKey": ()}), {"sshPublicKey": ["k"]},
            [f"change {DN}: sshPublicKey"], id="an-empty-list-clears",
        ),
        pytest.param(
            Entry(DN, least={"objectClass": ("top", "posixAccount")}),
            {"objectClass": ["POSIXACCOUNT", "extra"]},
            [f"change {DN}: objectClass"],
            id="classes-have-no-case",
        ),
        pytest.param(
            Entry(DN, {"member": ("uid=Ben, ou=people,dc=x",)}),
            {"member": ["uid=ben,ou=people,dc=x"]},
            [],
            id="names-of-entries-are-compared-as-such",
        ),
        pytest.param(Entry(DN, first={"uid": ("ada",)}), {"uid": ["else"]}, [], id="only-at-first"),
        pytest.param(Entry("uid=new,dc=x", {"cn": ("N",)}), {}, ["add uid=new,dc=x"], id="new"),
    ],
)  # fmt: skip
def test_changes_in_words(entry, have, said):
    there = {entries.dn_key(DN): have}
    assert [change.said for change in entries.changes([entry], there)] == said


def test_a_class_that_is_there_in_another_case_is_not_added_again():
    entry = Entry(DN, least={"objectClass": ("top", "posixAccount")})
    there = {entries.dn_key(DN): {"objectClass": ["POSIXACCOUNT"]}}
    (change,) = entries.changes([entry], there)
    assert "objectClass: top\n" in change.record and "posixAccount" not in change.record


def test_slapds_numbers_do_not_count_but_the_order_of_access_does():
    dn = "olcDatabase={2}mdb,cn=config"
    there = {
        entries.dn_key(dn): {
            "olcAccess": ["{0}to a by * none", "{1}to * by * read"],
            "olcModuleLoad": ["{0}memberof.la", "{1}syncprov.so"],
        }
    }
    same = Entry(
        "olcDatabase={1}mdb,cn=config",
        {"olcAccess": ("to a by * none", "to * by * read")},
        least={"olcModuleLoad": ("syncprov", "memberof")},
    )
    assert entries.changes([same], there) == []
    turned = Entry(dn, {"olcAccess": ("to * by * read", "to a by * none")})
    (change,) = entries.changes([turned], there)
    assert "replace: olcAccess\nolcAccess: {0}to * by * read\n" in change.record


names = st.sampled_from(["cn", "mail", "member", "description"])
lists = st.lists(st.sampled_from(["a", "b", "c=d,e=f", "é", " x"]), unique=True, max_size=4)


@given(
    st.dictionaries(names, lists.filter(bool)),
    st.dictionaries(names, lists),
    st.booleans(),
)
def test_the_record_makes_the_wanted_entry_and_then_there_is_nothing_to_do(have, wanted, exists):
    entry = Entry(DN, {name: tuple(values) for name, values in wanted.items()})
    there = {entries.dn_key(DN): have} if exists else {}
    for change in entries.changes([entry], there):
        there = applied(change.record, there)
    assert entries.changes([entry], there) == []
    if exists:
        for name, values in have.items():
            if name not in wanted:
                assert there[entries.dn_key(DN)][name] == values


def test_only_what_is_there_is_removed():
    there = {entries.dn_key(DN): {"cn": ["Ada"]}}
    found = entries.removals([DN, "uid=ghost,dc=x"], there)
    assert [change.said for change in found] == [f"delete {DN}"]
    assert applied(found[0].record, there) == {}
