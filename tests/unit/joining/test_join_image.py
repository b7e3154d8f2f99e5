"""The join register as a whole: taken and put back while it is in use."""

import pytest
from saltern import join_image
from saltern.join_book import Book, BookError


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path / "join/register.db")


def test_a_book_is_put_back_whole_while_it_is_in_use(book):
    book.admit("node01", "aa", "token", "me", 1.0)
    image = join_image.take(book)
    book.admit("node02", "bb", "token", "me", 2.0)
    assert join_image.hosts(image) == {"node01": "aa"}
    join_image.put_back(book, image)
    assert [row["id"] for row in book.hosts()] == ["node01"]
    book.enqueue("node01", 3.0)
    assert [row["id"] for row in book.queue()] == ["node01"]


def test_what_is_no_book_replaces_nothing(book):
    book.admit("node01", "aa", "token", "me", 1.0)
    for image in (b"", b"no book at all" * 100):
        with pytest.raises(BookError, match="is none"):
            join_image.put_back(book, image)
    assert [row["id"] for row in book.hosts()] == ["node01"]
