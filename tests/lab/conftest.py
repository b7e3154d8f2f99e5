"""One lab for the tests here, from bare hosts."""

import os

import pytest
from labs import Lab, started

NAME = os.environ.get("SALTERN_TEST_LAB", "test")
STANDING = os.environ.get("SALTERN_STANDING_LAB")  # a lab that is up already, for work on a test
STANDING_PAIR = os.environ.get("SALTERN_STANDING_PAIR")


@pytest.fixture(scope="session")
def first_run(request):
    """What `make cluster` printed on a lab that did not exist before."""
    with started(request, NAME) as lab:
        yield lab.printed


@pytest.fixture(scope="session")
def lab(request):
    """The cluster that the first run made."""
    if STANDING:
        return Lab(STANDING)
    request.getfixturevalue("first_run")
    return Lab(NAME)


@pytest.fixture(scope="session")
def pair(request):
    """The cluster of the topology `pair`, from bare hosts."""
    if STANDING_PAIR:
        yield Lab(STANDING_PAIR)
        return
    with started(request, f"{NAME}p", "pair") as lab:
        yield lab
