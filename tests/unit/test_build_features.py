"""What each feature needs, and which line of configure speaks of it."""

import pytest
from saltern import build_features
from saltern.build_features import FEATURES


def files_of(name):
    return [pattern.replace("*", "5") for pattern in FEATURES[name].files]


@pytest.mark.parametrize("name", FEATURES)
def test_each_feature_is_told_by_all_of_its_files(name):
    files = files_of(name)
    assert name in build_features.present(files)
    for absent in files:
        rest = [file for file in files if file != absent]
        assert build_features.missing([name], rest) == [name]
        (problem,) = build_features.lacking([name], rest, "/opt/slurm/x")
        assert problem.where == f"/opt/slurm/x, feature {name}"
        assert problem.found == ("only some of its files" if rest else "none of its files")


def test_a_file_elsewhere_is_not_the_plugin():
    assert build_features.present(["share/doc/gpu_nvml.so", "lib/slurm/gpu_nvml.so.txt"]) == []


@pytest.mark.parametrize(
    ("feature", "output", "line"),
    [
        pytest.param(
            "nvml",
            "checking for nvml.h... no\nconfigure: WARNING: unable to locate libnvidia-ml.so\n"
            "checking for nvidia... no",
            "configure: WARNING: unable to locate libnvidia-ml.so",
            id="a warning before a plain no",
        ),
        pytest.param(
            "jwt",
            "checking for jwt.h... yes\nchecking for jwt_new in -ljwt... no\nchecking jwt... yes",
            "checking for jwt_new in -ljwt... no",
            id="a no before a yes",
        ),
        pytest.param(
            "pmix",
            "checking for pmix installation... \nchecking for pmix.h... yes",
            "checking for pmix installation...",
            id="an empty answer is a no",
        ),
        pytest.param("lua", "checking for gcc... gcc\n", "nothing about it", id="silence"),
        pytest.param("mysql", "for MariaDB... yes", "for MariaDB... yes", id="its other name"),
    ],
)
def test_the_deciding_line(feature, output, line):
    assert build_features.deciding_line(feature, output) == line


@pytest.mark.parametrize(
    ("feature", "family", "do"),
    [
        pytest.param("nvml", "Debian", "install libnvidia-ml-dev on the builder", id="Debian"),
        pytest.param("nvml", "RedHat", "install cuda-nvml-devel on the builder", id="RedHat"),
        pytest.param("pmix", "Debian", "look at the build of pmix before Slurm's", id="our own"),
    ],
)
def test_the_remedy_is_of_this_system(feature, family, do):
    (problem,) = build_features.unbuilt([feature], [], "", family)
    assert problem.do == do


@pytest.mark.parametrize("family", ["Debian", "RedHat"])
def test_every_library_that_is_not_built_here_has_a_package(family):
    for name in FEATURES.keys() - {"hwloc", "pmix"}:
        assert build_features.packages([name], family), name


def test_what_was_built_here_is_asked_for_by_the_tree_s_prefix():
    flags = build_features.flags(["pmix", "hwloc", "nvml"], "/opt/slurm/x")
    assert flags == ["--with-hwloc=/opt/slurm/x", "--with-nvml", "--with-pmix=/opt/slurm/x"]
