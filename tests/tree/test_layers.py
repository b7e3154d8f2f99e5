"""The house: who may import or call whom, and where nothing may stand."""

import ast
import re
from pathlib import Path

import pytest
import yaml
from saltern import overview, roles

ROOT = Path(__file__).resolve().parents[2]
UTILS = sorted((ROOT / "_utils/saltern").glob("*.py"))
MODULES = sorted((ROOT / "_modules").glob("*.py"))
STATES = sorted((ROOT / "_states").glob("*.py"))
RUNNERS = sorted((ROOT / "_runners").glob("*.py"))
SLS = [*sorted((ROOT / "salt").glob("p*/**/*.sls")), ROOT / "salt/top.sls"]  # the top file last

# Plain Python may come from here; the two libraries only where the master reads the plan; files
# only in the stores: secrets, backups, the join register.
LIBRARIES = {"schema": {"jsonschema"}, "nodeset": {"ClusterShell"}}
TOUCHES_FILES = {"secret_store", "backup_store", "join_book", "join_image"}
OUTSIDE = {"subprocess", "socket", "shutil", "os", "pathlib", "urllib", "tempfile"}


def name(path):
    return path.relative_to(ROOT).as_posix()


def imports(path):
    """The top-level names of the packages that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def dunders(path):
    """The names that Salt gives a file and that it uses."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id.startswith("__")
    }


def functions(path):
    """The public functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]


@pytest.mark.parametrize("path", UTILS, ids=name)
def test_plain_python_knows_no_salt_and_touches_nothing(path):
    used = imports(path)
    assert "salt" not in used
    assert not dunders(path) & {"__salt__", "__pillar__", "__opts__", "__grains__", "__states__"}
    if path.stem not in TOUCHES_FILES:
        assert not used & OUTSIDE
    assert not used & ({"jsonschema", "ClusterShell"} - LIBRARIES.get(path.stem, set()))


def test_minions_need_no_library():
    """What a module or state imports, and all that this imports in turn, is plain Python of
    ours."""
    reached, front = (
        set(),
        {path.stem for path in UTILS for user in [*MODULES, *STATES] if _uses(user, path.stem)},
    )
    while front:
        reached |= front
        front = {
            other.stem
            for stem in front
            for other in UTILS
            if _uses(ROOT / f"_utils/saltern/{stem}.py", other.stem)
        } - reached
    assert reached, "no module imports saltern.*"
    assert not reached & LIBRARIES.keys()


def _uses(path, stem):
    text = path.read_text(encoding="utf-8")
    return bool(
        re.search(
            rf"^(from saltern import .*\b{stem}\b|from saltern\.{stem} import)", text, re.MULTILINE
        )
    )


@pytest.mark.parametrize("path", STATES, ids=name)
def test_states_only_compare_and_call(path):
    assert not imports(path) & OUTSIDE
    assert not dunders(path) & {"__pillar__", "__grains__"}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_one_reader_of_pillar(path):
    assert ("__pillar__" in dunders(path)) == (path.stem == "saltern")


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_functions_say_how_they_are_called(path):
    assert functions(path)
    for function in functions(path):
        if function.name.startswith("__"):
            continue
        text = ast.get_docstring(function) or ""
        assert "CLI Example:" in text, f"{name(path)}: {function.name}"
        for argument in function.args.args:
            assert re.search(rf"\b{argument.arg}\b.*:", text), (
                f"{name(path)}: {function.name} does not say {argument.arg}"
            )


@pytest.mark.parametrize("path", [*STATES, *RUNNERS, *UTILS], ids=name)
def test_public_functions_have_a_docstring(path):
    for function in functions(path):
        assert ast.get_docstring(function) or function.name.startswith("__"), (
            f"{name(path)}: {function.name}"
        )


@pytest.mark.parametrize("path", [*MODULES, *STATES, *RUNNERS], ids=name)
def test_virtual_name_is_the_file_name(path):
    assert f'__virtualname__ = "{path.stem}"' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [*MODULES, *STATES, *UTILS], ids=name)
def test_no_shell_strings(path):
    text = path.read_text(encoding="utf-8")
    assert "shell=True" not in text.replace("python_shell=False", "")
    for call in re.findall(r'"cmd\.run_all"\]\((?:[^()]|\([^()]*\))*\)', text):
        assert "python_shell=False" in call, f"{name(path)}: {call[:80]}"


@pytest.mark.parametrize("path", SLS, ids=name)
def test_sls_declare(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# "), "the first line says what the file achieves"
    for forbidden in (
        "pillar.get",
        "pillar[",
        "grains.get",
        "grains[",
        "mine.get",
        "publish.publish",
        "cmd.run",
    ):
        assert forbidden not in text
    called = set(re.findall(r"salt\[['\"]([a-z_]+\.[a-z_]+)['\"]\]", text))
    assert all(call.split(".")[0] in {path.stem for path in MODULES} for call in called), called
    assert len(text.splitlines()) <= 130


# What states may ask while they are laid out: the plan and what follows from it, nothing of the
# host (a compiled state would depend on when it was compiled).
ASKED = {
    "saltern.view",
    "saltern.phase_before",
    "saltern.platform",
    "saltern.sysctl_parameters",
    "saltern.sysctl_text",
    "slurm_build.packages",
    "slurm_cluster.daemons",
    "slurm_cluster.servers",
    "slurm_conf.slurmdbd_text",
    "slurm_database.conf_text",
    "slurm_database.here",
    "slurm_nodes.slurmd_arguments",
    "sssd.conf_text",
}


def test_sls_ask_the_plan_only():
    asked = {
        call
        for path in SLS
        for call in re.findall(
            r"salt\[?['\".]+([a-z_]+\.[a-z_]+)", path.read_text(encoding="utf-8")
        )
    }
    assert "saltern.view" in asked
    assert asked <= ASKED, asked - ASKED


@pytest.mark.parametrize("path", SLS[:-1], ids=name)
def test_sls_names_are_sentences_under_their_component(path):
    """The id's first word is unique to the file, but for the gate of the phase."""
    ids = re.findall(r'^"([^"]+)":', path.read_text(encoding="utf-8"), re.MULTILINE)
    assert ids
    assert all(re.match(r"[a-z0-9_ -]+: \S", one) for one in ids), ids


def test_modes_are_quoted_with_their_zero():
    loose = [
        f"{name(path)}: {line.strip()}"
        for path in SLS
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*- (dir_|file_)?mode: (?!'0[0-7]{3}'|'?\{\{)", line)
    ]
    assert not loose, loose


def test_reactor_files_turn_one_event_into_one_runner_call():
    for path in (ROOT / "reactor").rglob("*.sls"):
        lines = [
            line
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.strip() and not line.startswith("#")
        ]
        assert len(lines) <= 10, name(path)
        assert len([line for line in lines if re.match(r"\s+runner\.", line)]) == 1, name(path)


# Larger than a module should be, each for its reason.
LARGE = {
    # One function a phase, and the eyes of each.
    "_modules/saltern_gate.py": 430,
    # The one reader of pillar has what a host may know, and the files that its secrets go into.
    "_modules/saltern.py": 430,
    # The one door: a few lines and a docstring for each verb.
    "_runners/saltern.py": 450,
    # Source, build, offer and deployment of an artefact share its manifest and its locks.
    "_modules/slurm_build.py": 760,
}


@pytest.mark.parametrize("path", [*UTILS, *MODULES, *STATES, *RUNNERS], ids=name)
def test_modules_are_small(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LARGE.get(name(path), 370), f"{name(path)} has {lines} lines"


def test_sls_trees_hold_no_python_package():
    trees = (ROOT / "salt", ROOT / "pillar", ROOT / "reactor")
    found = [path for tree in trees for path in tree.rglob("__init__.py")]
    assert not [path for path in found if "_utils" not in path.parts]


@pytest.mark.parametrize("link", ["_modules", "_states", "_utils"])
def test_the_file_root_links_to_the_code(link):
    assert (ROOT / "salt" / link).resolve() == ROOT / link


def test_the_file_server_serves_the_states_only():
    text = (ROOT / "etc/master.d/saltern.conf").read_text(encoding="utf-8")
    assert "base: [/srv/saltern/salt] " in text
    assert "auto_accept" not in text
    assert "peer:" not in text
    assert "file_recv" not in text


def test_each_component_of_the_top_file_exists():
    names = re.findall(
        r"^    - (p[0-9]_[a-z_.]+)$",
        (ROOT / "salt/top.sls").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert names
    for sls in names:
        path = ROOT / "salt" / sls.replace(".", "/")
        assert path.with_suffix(".sls").exists() or (path / "init.sls").exists(), sls


@pytest.mark.parametrize("role", roles.MEANING)
def test_the_phases_of_a_role_are_those_of_the_top_file(role):
    top = yaml.safe_load((ROOT / "salt/top.sls").read_text(encoding="utf-8"))["base"]
    mine = [name for name, owners in roles.PHASES.items() if owners is None or role in owners]
    assert mine == overview.phases(top, frozenset({role}))


def test_no_phase_has_a_component_that_nobody_gets():
    top = (ROOT / "salt/top.sls").read_text(encoding="utf-8")
    included = {
        line.strip(" -\n") for path in SLS for line in path.read_text(encoding="utf-8").splitlines()
    }
    for path in SLS:
        sls = ".".join(path.relative_to(ROOT / "salt").with_suffix("").parts).removesuffix(".init")
        if sls != "top":
            assert f"- {sls}\n" in top or sls in included, f"{sls} is in no host's highstate"
