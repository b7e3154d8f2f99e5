"""How a runner's answer looks in a terminal."""

import pytest
from support import load


@pytest.fixture
def show(monkeypatch):
    """The outputter, as on a pipe: without bold."""
    module = load("output", "saltern")
    monkeypatch.setattr(module.os, "isatty", lambda _: False)
    return module.output


def test_rows_become_a_table_with_columns_in_step(show):
    rows = [
        {"host": "mgmt01", "roles": ["controller", "database"], "count": 1},
        {"host": "n1", "roles": []},
    ]
    assert show({"hosts": rows}).splitlines() == [
        "hosts",
        "  host    roles                 count",
        "  ------  --------------------  -----",
        "  mgmt01  controller, database  1",
        "  n1",
    ]


def test_what_was_not_measured_is_blank(show):
    rows = [{"check": "a", "took_s": 1.5}, {"check": "b", "took_s": None}]
    assert show({"rows": rows}).splitlines()[-1].strip() == "b"


def test_a_cell_is_one_line(show):
    assert show({"rows": [{"reason": "closed:\n- one\n- two"}]}).splitlines()[-1] == (
        "  closed: - one - two"
    )


def test_texts_are_lines_and_lists_are_items(show):
    data = {"cluster": "lab, 4 hosts", "what_next": ["one", "two"]}
    assert show(data) == "cluster: lab, 4 hosts\n\nwhat next\n  - one\n  - two"


def test_nothing_is_shown_of_what_is_empty_or_salt_s_own(show):
    assert show({"outputter": "saltern", "retcode": 1, "problems": [], "partitions": []}) == ""


def test_titles_are_bold_on_a_terminal_only(monkeypatch):
    module = load("output", "saltern")
    monkeypatch.setattr(module.os, "isatty", lambda _: True)
    assert module.output({"a": "b"}) == "\033[1ma\033[0m: b"
