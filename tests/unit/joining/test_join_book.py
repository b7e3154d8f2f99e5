"""The register, the queue and the history: whole after any cut, and for several processes."""

import multiprocessing
import os
import sqlite3
import stat

import pytest
from saltern.join_book import Book, BookError


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path / "join/register.db")


def test_its_place_is_for_root_alone(book):
    book.admit("node01", "aa", "fingerprint", "root", 1.0)
    assert stat.S_IMODE(book.path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(book.path.stat().st_mode) == 0o600


def test_a_folder_that_others_can_write_is_refused(book):
    book.path.parent.mkdir()
    os.chmod(book.path.parent, 0o777)  # noqa: S103 - what is refused
    with pytest.raises(BookError, match="can admit hosts"):
        book.host("node01")


def test_a_damaged_file_is_named(book):
    book.path.parent.mkdir(mode=0o700)
    book.path.write_bytes(b"no database" * 200)
    with pytest.raises(BookError, match=r"register\.db.*restore it from a backup"):
        book.hosts()


def test_who_when_by_which_proof(book):
    book.admit("node01", "aa", "join token", "the master", 5.0)
    entry = book.host("node01")
    assert (entry["fingerprint"], entry["proof"], entry["by"], entry["at"]) == (
        "aa", "join token", "the master", 5.0,
    )  # fmt: skip
    line = book.history(1)[0]
    assert (line["id"], line["what"], line["by"]) == ("node01", "admitted", "the master")
    assert "join token" in line["detail"] and "aa" in line["detail"]


def test_a_new_key_makes_a_host_join_again(book):
    book.admit("node01", "aa", "fingerprint", "root", 1.0)
    book.joined("node01", 2.0, {"highstate": 1.5})
    assert book.host("node01")["joined_at"] == 2.0
    book.admit("node01", "bb", "replaced by a person", "root", 3.0)
    assert book.host("node01")["joined_at"] is None


def test_a_joined_host_that_needs_nothing_is_no_history(book):
    book.admit("node01", "aa", "fingerprint", "root", 1.0)
    book.joined("node01", 2.0, {})
    lines = len(book.history(99))
    book.joined("node01", 3.0, {})
    assert len(book.history(99)) == lines
    assert book.host("node01")["joined_at"] == 3.0
    book.joined("node01", 4.0, {"highstate": 1.0})
    assert book.history(1)[0]["detail"] == "highstate 1.0 s"


def test_history_is_bounded(book, monkeypatch):
    monkeypatch.setattr("saltern.join_book._HISTORY_KEPT", 3)
    for number in range(9):
        book.note("node01", f"line {number}", "root", "", float(number))
    assert [row["what"] for row in book.history(99)] == ["line 6", "line 7", "line 8"]


def test_one_host_stands_once_in_the_queue(book):
    assert book.enqueue("node01", 1.0)
    assert not book.enqueue("node01", 2.0)
    assert len(book.queue()) == 1


def test_a_host_in_work_is_not_taken_twice(book):
    book.enqueue("node01", 1.0)
    assert book.take("node01")
    assert not book.take("node01")
    assert not book.enqueue("node01", 2.0)
    assert book.due(9.0, 10) == []


def test_a_start_makes_a_later_try_due_at_once(book):
    book.enqueue("node01", 1.0)
    book.take("node01")
    book.failed("node01", "p1_foundation: no", 2.0, 1000.0)
    assert book.due(3.0, 10) == []
    book.enqueue("node01", 3.0)
    assert [row["id"] for row in book.due(3.0, 10)] == ["node01"]
    assert book.queue()[0]["attempts"] == 1


def test_what_was_in_work_is_put_back_after_the_master_ended(book):
    for name in ("node01", "node02"):
        book.enqueue(name, 1.0)
    book.take("node01")
    assert book.recover() == ["node01"]
    assert {row["id"] for row in book.due(2.0, 10)} == {"node01", "node02"}
    assert book.recover() == []


def test_a_knock_that_comes_while_one_is_answered_stays(book):
    book.knock("node01", False, 1.0)
    seen = book.knocks()[0]
    book.knock("node01", True, 2.0)
    book.answered(seen)
    again = book.knocks()[0]
    assert again["started"] == 1
    book.answered(again)
    assert book.knocks() == []


def test_a_start_is_not_forgotten_when_the_key_shows_itself_after_it(book):
    book.knock("node01", True, 1.0)
    book.knock("node01", False, 2.0)
    assert [(row["id"], row["started"]) for row in book.knocks()] == [("node01", 1)]


def test_news_are_news_once(book):
    assert book.key_seen("node09", "refused", "not in the plan", 1.0)
    assert not book.key_seen("node09", "refused", "not in the plan", 2.0)
    assert book.key_seen("node09", "refused", "another", 3.0)


def test_ids_that_anyone_can_make_up_do_not_fill_the_disk(book, monkeypatch):
    monkeypatch.setattr("saltern.join_book._KEYS_KEPT", 5)
    for number in range(20):
        book.key_seen(f"x{number}", "waiting", "no proof", float(number))
    assert [row["id"] for row in book.unadmitted()] == [
        f"x{number}" for number in range(19, 14, -1)
    ]


def test_a_cut_leaves_all_or_nothing(book, monkeypatch):
    book.admit("node01", "aa", "fingerprint", "root", 1.0)
    before = book.hosts(), book.history(10)
    monkeypatch.setattr("saltern.join_book._note", cut)
    with pytest.raises(KeyboardInterrupt):
        book.forget("node01", "retired", "root", 2.0)
    assert (book.hosts(), book.history(10)) == before


def cut(*_):
    raise KeyboardInterrupt


def _knock(path, first):
    book = Book(path)
    for number in range(first, first + 25):
        book.knock(f"node{number:03d}", True, float(number))


def test_several_processes_lose_nothing(book):
    book.hosts()
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_knock, args=(book.path, 25 * n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert len(book.knocks()) == 100


def test_a_row_is_what_sqlite_holds(book):
    book.admit("node01", "aa", "fingerprint", "root", 1.0)
    with sqlite3.connect(book.path) as raw:
        assert raw.execute("SELECT id FROM hosts").fetchall() == [("node01",)]
