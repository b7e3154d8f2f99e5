"""The artefact's id, its steps, and what its tree can do."""

from pathlib import Path

import pytest
from saltern import build, build_features
from saltern import plan as plans
from support import SCHEMA, example

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CONFIGURE = (FIXTURES / "slurm-configure-without-nvml.log").read_text(encoding="utf-8")
SYSTEM = {"os": "Debian", "osrelease": "13", "osarch": "amd64"}
PACKAGES = {"gcc": "14.2", "libnvidia-ml-dev": "550"}
PREFIX = "/opt/slurm/24.11.5-0123456789ab"


def section(**changes):
    """The plan's build section."""
    return plans.resolve(SCHEMA, example(**changes)).data["build"]


def plugins(name):
    """A real tree's plugin files (24.11.5), as paths under its prefix."""
    names = (FIXTURES / f"slurm-plugins-{name}.txt").read_text(encoding="utf-8").split()
    return [f"lib/slurm/{plugin}" for plugin in names]


@pytest.mark.parametrize(
    ("changes", "system", "packages"),
    [
        pytest.param({}, {}, {"libnvidia-ml-dev": "560"}, id="new NVML"),
        pytest.param({}, {"osrelease": "14"}, {}, id="another system"),
        pytest.param({"build": {"configure": {"slurm": ["--enable-debug"]}}}, {}, {}, id="a flag"),
        pytest.param({"build": {"features": ["munge"]}}, {}, {}, id="other features"),
        pytest.param(
            {
                "build": {
                    "sources": {"slurm": {"version": "24.11.5", "file": "x", "sha256": "0" * 64}}
                }
            },
            {},
            {},
            id="another source",
        ),
    ],
)
def test_another_input_gives_another_id(changes, system, packages):
    before = build.build_id(build.spec(section()), SYSTEM, PACKAGES)
    after = build.build_id(
        build.spec(section(**changes)), {**SYSTEM, **system}, {**PACKAGES, **packages}
    )
    assert before != after


def test_the_same_input_gives_the_same_id_in_any_order():
    wanted = build.spec(section())
    shuffled = {**wanted, "features": list(reversed(wanted["features"]))}
    again = build.spec({**section(), "features": shuffled["features"]})
    assert build.build_id(wanted, SYSTEM, PACKAGES) == build.build_id(again, SYSTEM, PACKAGES)


def test_the_spec_is_the_same_on_every_host_and_the_plan_alone_changes_it():
    """Hosts of another system wait for the artefact by this digest."""
    digest = build.digest(build.spec(section()))
    foreign_plan = section(**{"os:name": "Ubuntu", "os:release": "24.04"})
    assert build.digest(build.spec(foreign_plan)) == digest
    assert build.digest(build.spec(section(build={"features": ["munge"]}))) != digest


def test_pam_is_built_last_and_only_if_wanted():
    archives = {name: f"/src/{name}.tar" for name in build.ORDER}
    for features, expected in (["munge", "pam"], True), (["munge"], False):
        wanted = build.spec(section(build={"features": features}))
        names = [step.name for step in build.steps(wanted, archives, PREFIX, "/work", 2)]
        assert ("slurm-pam" in names) is expected
        assert [name for name in names if name.endswith("-install")] == [
            "hwloc-install",
            "pmix-install",
            "slurm-install",
        ]
        assert names[-1] == "trim"


def test_where_the_sources_come_from_does_not_matter():
    elsewhere = section()
    elsewhere["sources"]["slurm"]["url"] = "https://site.example/slurm.tar.gz"
    assert build.spec(elsewhere) == build.spec(section())


def test_why_names_what_changed():
    before = {"packages": PACKAGES, "spec": {"features": ["munge"]}}
    after = {"packages": {**PACKAGES, "gcc": "14.3"}, "spec": {"features": ["munge", "nvml"]}}
    assert build.why(after, before) == [
        "packages:gcc: 14.2 -> 14.3",
        "spec:features: munge -> munge nvml",
    ]
    assert build.why(after, None) == ["nothing was built yet"]


def test_each_source_is_built_against_the_ones_before_it():
    archives = {name: f"/src/{name}.tar" for name in build.ORDER}
    steps = build.steps(build.spec(section()), archives, PREFIX, "/work", 2)
    configures = {step.name: step.command for step in steps if step.name.endswith("-configure")}
    assert list(configures) == ["hwloc-configure", "pmix-configure", "slurm-configure"]
    assert f"--with-hwloc={PREFIX}" in configures["pmix-configure"]
    assert {f"--with-hwloc={PREFIX}", f"--with-pmix={PREFIX}", "--with-nvml"} <= set(
        configures["slurm-configure"]
    )
    assert configures["pmix-configure"][0] == "/work/pmix/3rd-party/openpmix/configure"


def test_a_missing_feature_names_the_line_that_decided_and_the_package():
    (problem,) = build_features.unbuilt(["nvml"], plugins("lacking"), CONFIGURE, "Debian")
    assert problem.where == "build, feature nvml"
    assert "configure: WARNING: unable to locate libnvidia-ml.so and/or nvml.h" in problem.found
    assert problem.expected == "lib/slurm/gpu_nvml.so"
    assert problem.do == "install libnvidia-ml-dev on the builder"


def test_features_are_read_from_files():
    files = [*plugins("working"), "lib/libpmix.so.2"]
    assert {"nvml", "pmix"} <= set(build_features.present(files))
    assert build_features.missing(["nvml", "pmix"], plugins("lacking")) == ["nvml", "pmix"]


def test_every_feature_of_the_schema_is_known():
    known = SCHEMA["properties"]["build"]["properties"]["features"]["items"]["enum"]
    assert set(known) == set(build_features.FEATURES)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("libpmix.so.2 => /usr/lib/libpmix.so.2 (0x1)", "not from the tree", id="PMIx"),
        pytest.param("libfoo.so.1 => not found", "libfoo.so.1 is not found", id="vanished"),
        pytest.param("libnvidia-ml.so.1 => not found", "", id="NVML comes with the driver"),
        pytest.param(f"libpmix.so.2 => {PREFIX}/lib/libpmix.so.2 (0x1)", "", id="its own PMIx"),
    ],
)
def test_libraries_resolve_inside_the_tree(line, words):
    found = build.foreign(f"{PREFIX}/lib/slurm/mpi_pmix_v5.so:\n\t{line}\n", PREFIX)
    assert [words in text for text in found] == ([True] if words else [])


def test_surplus_spares_what_is_used_and_the_newest():
    names = ["a", "b", "c", "d"]
    ages = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    assert build.surplus(names, ages, {"a"}, keep=2) == ["b"]
    assert build.surplus(names, ages, {"a"}, keep=3) == []
