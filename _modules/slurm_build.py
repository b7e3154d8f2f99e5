"""hwloc, PMIx and Slurm from source: built once on the builder, unpacked on every host."""

import contextlib
import errno
import fcntl
import glob
import http.client
import json
import os
import shutil
import tarfile
import time
import urllib.request

import salt.utils.files
import salt.utils.hashutils
from salt.exceptions import CommandExecutionError
from saltern import build, build_features

__virtualname__ = "slurm_build"

STORE = "/var/lib/saltern/artefacts"
SOURCES = "/var/lib/saltern/sources"
WORK = "/var/lib/saltern/build"
LOGS = "/var/log/saltern"
USER = "saltern-build"
UNIT = "saltern-build.service"
MINE = "slurm_build_published"
MANIFEST = "manifest.json"

_STEP_S = 4 * 3600
_OWN_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_PAUSE_S = 2
_TAIL_LINES = 15
_NVML_HEADERS = ("/usr/include/nvml.h", "/usr/local/cuda/include/nvml.h")


def __virtual__():
    return __virtualname__


# --- what would be built
# -------------------------------------------------------------------------------------


def plan():
    """What would be built on this builder, and why.

    Returns a dict: ``name`` (version and build id), ``build_id``, ``spec_id``, ``inputs``,
    ``needed`` (bool: the
    store does not have it), ``why`` (list of str: what changed since the last artefact).

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_build.plan
    """
    wanted = build.spec(_section())
    inputs = {"spec": wanted, "system": _system(), "packages": _package_versions(wanted)}
    identity = build.build_id(wanted, inputs["system"], inputs["packages"])
    name = build.name(wanted, identity)
    have = os.path.exists(_manifest_path(name))
    last = build.newest(_manifests())
    return {
        "name": name,
        "build_id": identity,
        "spec_id": build.digest(wanted),
        "inputs": inputs,
        "needed": not have,
        "why": [] if have else build.why(inputs, last["inputs"] if last else None),
    }


def needed():
    """Whether the builder has to build, so that compilers are installed only then.

    Returns bool.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_build.needed
    """
    return plan()["needed"]


def packages():
    """The packages that a build needs on this operating system.

    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_build.packages
    """
    wanted = _section()["features"]
    return sorted({*__salt__["saltern.platform"]()["slurm_build"], *_feature_packages(wanted)})


def manifest(name=""):
    """The manifest of an artefact in the builder's store.

    name: str, version and build id; empty for the one that the plan wants
    Returns a dict. Raises CommandExecutionError when there is none.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_build.manifest
    """
    path = _manifest_path(name or plan()["name"])
    if not os.path.exists(path):
        raise CommandExecutionError(f"{path} does not exist: this artefact was not built here.")
    return _read_json(path)


def published():
    """What the builder offers to the other hosts, for the Salt mine.

    Returns the manifest of the wanted artefact, empty when it is not built.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_build.published
    """
    wanted = plan()
    return {} if wanted["needed"] else manifest(wanted["name"])


def publish():
    """Put what ``published`` says into the Salt mine, unless it stands there already.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_build.publish
    """
    told = __salt__["mine.get"](__opts__["id"], MINE).get(__opts__["id"])
    if told != published():
        __salt__["mine.send"](MINE, mine_function="slurm_build.published")


def features(tree=build.LINK):
    """What a tree can do, from its files.

    tree: str, path
    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt '*' slurm_build.features
    """
    return build_features.present(_files(tree))


def verify(tree=build.LINK):
    """Why a tree is not what its manifest and the plan say: features, files, and the libraries of
    each plugin.

    tree: str, path
    Returns a list of str, empty when all is well.

    CLI Example:

    .. code-block:: bash

        salt '*' slurm_build.verify
    """
    real = os.path.realpath(tree)
    if not os.path.exists(os.path.join(real, MANIFEST)):
        return [f"{tree}: no artefact is deployed here"]
    files = _files(real)
    lost = sorted(set(_read_json(os.path.join(real, MANIFEST))["files"]) - set(files))
    found = [
        str(problem) for problem in build_features.lacking(_section()["features"], files, real)
    ]
    if lost:
        found.append(
            f"{real}: found {len(lost)} files missing, first {lost[0]}; expected the manifest's"
        )
    return found + build.foreign(_libraries(real, files), real)


# --- building
# ------------------------------------------------------------------------------------------------


def build_artefact():
    """Build the wanted artefact into the store, where its manifest appears last.

    Another build is waited for, as long as hosts would wait (``waits:artefact_s``).
    Returns the manifest. Raises CommandExecutionError with the step and the end of its log.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_build.build
    """
    try:
        with _only_one(__salt__["saltern.view"]("waits:artefact_s")):
            return _build_wanted()
    except OSError as error:
        raise CommandExecutionError(f"The build failed: {error}.") from None


def _build_wanted():
    wanted = plan()
    if not wanted["needed"]:
        return manifest(wanted["name"])
    archives = {name: _source(name) for name in build.ORDER}
    try:
        _wipe()
        _make_tree(wanted, archives)
        return _pack(wanted)
    finally:
        _wipe()


def _make_tree(wanted, archives):
    prefix = f"{build.ROOT}/{wanted['name']}"
    logs = os.path.join(LOGS, f"build-{wanted['name']}")
    os.makedirs(logs, mode=0o755, exist_ok=True)
    spec = wanted["inputs"]["spec"]
    steps = build.steps(spec, archives, prefix, f"{WORK}/work", os.cpu_count() or 1)
    for number, step in enumerate(steps, 1):
        if step.name == "slurm-configure":
            _refuse_without_parts(spec)
        _tell(step.name, number, len(steps))
        _run_step(step, prefix, os.path.join(logs, f"{number:02d}-{step.name}.log"))
    _check_tree(spec, prefix, logs)


def _refuse_without_parts(spec):
    """configure would go on without them, and nodes would count no GPU and start no rank."""
    stage = f"{WORK}/stage"
    if "pmix" in spec["features"] and not os.path.exists(f"{stage}/include/pmix.h"):
        raise CommandExecutionError(
            "Slurm is not built before PMIx exists: the tree has no include/pmix.h."
        )
    if "nvml" in spec["features"] and not any(os.path.exists(path) for path in _NVML_HEADERS):
        raise CommandExecutionError(
            "Slurm is not built before NVML exists: found none of "
            f"{', '.join(_NVML_HEADERS)}; install {' '.join(_feature_packages(['nvml']))}, or "
            "take nvml out of "
            "build:features."
        )


def _check_tree(spec, prefix, logs):
    stage = f"{WORK}/stage"
    files = _files(stage)
    said = "".join(_read(path) for path in sorted(glob.glob(f"{logs}/*-slurm-configure.log")))
    problems = build_features.unbuilt(spec["features"], files, said, __grains__["os_family"])
    if problems:
        raise CommandExecutionError("\n".join(str(problem) for problem in problems))
    objects = [f"{prefix}/{file}" for file in files if _is_object(file)]
    log = os.path.join(logs, "libraries.log")
    _run_step(
        build.Step("libraries", ["sh", "-c", 'ldd "$@" || true', "ldd", *objects], prefix),
        prefix,
        log,
    )
    foreign = build.foreign(_read(log), prefix)
    if foreign:
        raise CommandExecutionError("The built tree would not run:\n" + "\n".join(foreign))


def _pack(wanted):
    """The tree as one file of root's in the store, its manifest last."""
    name, prefix = wanted["name"], f"{build.ROOT}/{wanted['name']}"
    archive = os.path.join(STORE, f"slurm-{name}.tar.gz")
    aside = f"{archive}.new"
    tar = [
        "tar",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--sort=name",
        "-C",
        build.ROOT,
        "-czf",
        "-",
        name,
    ]
    _tell("pack", 1, 1)
    _run_step(build.Step("pack", tar, "/"), prefix, aside, errors=f"{LOGS}/build-{name}/pack.log")
    os.chmod(aside, 0o644)
    made = {
        "name": name,
        "build_id": wanted["build_id"],
        "spec_id": wanted["spec_id"],
        "inputs": wanted["inputs"],
        "features": build_features.present(_files(f"{WORK}/stage")),
        "files": _files(f"{WORK}/stage"),
        "archive": os.path.basename(archive),
        "size": os.path.getsize(aside),
        "sha256": salt.utils.hashutils.get_hash(aside, "sha256"),
        "built": time.time(),
    }
    os.replace(aside, archive)
    _write_json(_manifest_path(name), made)
    return made


def _run_step(step, prefix, log, errors=None):
    """One program in the builder's sandbox: no privileges, no network, and the final prefix bound
    to the stage."""
    properties = {
        "User": USER,
        "Group": USER,
        "WorkingDirectory": step.folder,
        "TemporaryFileSystem": build.ROOT,
        "BindPaths": f"{WORK}/stage:{prefix}",
        "ReadWritePaths": WORK,
        "ProtectSystem": "strict",
        "PrivateTmp": "yes",
        "PrivateNetwork": "yes",
        "NoNewPrivileges": "yes",
        "UMask": "0022",
        "Nice": "5",
        "StandardOutput": f"file:{log}",
        "StandardError": f"file:{errors}" if errors else f"file:{log}",
    }
    command = [
        "systemd-run",
        "--quiet",
        "--wait",
        "--collect",
        f"--unit={UNIT}",
        "--setenv=LC_ALL=C",
    ]
    command += [f"--property={key}={value}" for key, value in properties.items()]
    for path in {log, errors} - {None}:
        with salt.utils.files.fopen(path, "w"):
            pass  # systemd's file: keeps what is longer than the new text
    result = __salt__["cmd.run_all"](
        [*command, *step.command],
        python_shell=False,
        timeout=_STEP_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    if result["retcode"]:
        said = _read(errors or log) or result["stderr"]
        tail = "\n".join(said.splitlines()[-_TAIL_LINES:])
        raise CommandExecutionError(
            f"The build stopped at {step.name} (exit status {result['retcode']}). The end of "
            f"{errors or log}:\n{tail}"
        )


def _wipe():
    """Nothing of a build that was cut stays: neither its unit nor its files."""
    __salt__["cmd.run_all"](["systemctl", "stop", UNIT], python_shell=False, ignore_retcode=True)
    shutil.rmtree(f"{WORK}/work", ignore_errors=True)
    shutil.rmtree(f"{WORK}/stage", ignore_errors=True)
    for path in glob.glob(f"{STORE}/*.new"):
        os.unlink(path)
    for name in ("work", "stage"):
        path = f"{WORK}/{name}"
        os.makedirs(path, mode=0o755)
        shutil.chown(path, USER, USER)


@contextlib.contextmanager
def _only_one(patience):
    """One build at a time into a store, which several builders may share."""
    os.makedirs(STORE, mode=0o755, exist_ok=True)
    deadline = time.monotonic() + patience
    with salt.utils.files.fopen(os.path.join(STORE, ".lock"), "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise CommandExecutionError(
                        f"Another build into {STORE} did not end within {patience} s: look at it "
                        "(salt-run jobs.active), then run again."
                    ) from None
            time.sleep(_PAUSE_S)
        yield


def _source(name):
    """The path of a source archive whose sha256 is the plan's."""
    source = _section()["sources"][name]
    path = os.path.join(SOURCES, source["file"])
    os.makedirs(SOURCES, mode=0o755, exist_ok=True)
    if not os.path.exists(path):
        _tell(f"{name}-download", 1, 1)
        _download(_source_url(name, source), f"{path}.part", f"build:sources:{name}")
        os.replace(f"{path}.part", path)
    found = salt.utils.hashutils.get_hash(path, "sha256")
    if found != source["sha256"]:
        aside = os.path.join(SOURCES, "refused", f"{source['file']}.{found[:12]}")
        os.makedirs(os.path.dirname(aside), mode=0o700, exist_ok=True)
        os.replace(path, aside)
        raise CommandExecutionError(
            f"build:sources:{name}: found sha256 {found}; expected {source['sha256']}. It is not "
            "used; "
            f"it lies at {aside} for inspection. Correct the mirror, or the plan."
        )
    return path


def _source_url(name, source):
    mirror = __salt__["saltern.view"]("mirror:sources")
    if mirror:
        return f"{mirror.rstrip('/')}/{source['file']}"
    if source["url"]:
        return source["url"]
    raise CommandExecutionError(
        f"build:sources:{name}: nothing says where {source['file']} comes from; expected "
        "mirror:sources (a base URL), "
        f"build:sources:{name}:url, or the file itself at {SOURCES}/{source['file']}."
    )


def _download(url, path, where):
    try:
        with (
            urllib.request.urlopen(url, timeout=60) as answer,
            salt.utils.files.fopen(path, "wb") as file,
        ):
            shutil.copyfileobj(answer, file)
            if getattr(answer, "length", None):  # http.client says nothing when it is cut
                raise ConnectionError(f"the answer was cut {answer.length} bytes before its end")
    except (OSError, http.client.HTTPException) as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        if getattr(error, "errno", None) in _OWN_DISK:
            raise CommandExecutionError(
                f"{where}: {path} could not be written: {error.strerror}."
            ) from None
        reason = getattr(error, "reason", error)
        raise CommandExecutionError(
            f"{where}: found no file at {url} ({reason}). Put it there, or correct the plan."
        ) from None


def _tell(step, number, total):
    __salt__["event.send"](
        "saltern/build/progress",
        {"step": step, "number": number, "total": total, "text": f"{step} ({number}/{total})"},
    )


# --- deploying
# -----------------------------------------------------------------------------------------------


def offered(timeout=0):
    """The artefact that the builder offers for this plan; waits for it with a bound.

    timeout: float, seconds; 0 looks once
    Returns the manifest with ``url``. Raises CommandExecutionError naming the builder.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_build.offered
    """
    builder = __salt__["saltern.view"]("peers:builder")[0]
    spec_id = build.digest(build.spec(_section()))
    start = time.monotonic()
    while True:
        record = __salt__["mine.get"](builder["name"], MINE).get(builder["name"])
        if record and record.get("spec_id") == spec_id:
            port = _section()["port"]
            return {**record, "url": f"http://{builder['name']}:{port}/{record['archive']}"}
        waited = time.monotonic() - start
        if waited >= timeout:
            offer = f"another one ({record['name']})" if record else "none"
            raise CommandExecutionError(
                f"Waited {waited:.0f} s for the builder {builder['name']} to offer the artefact "
                "of this plan "
                f"(spec {spec_id}); it offers {offer}. Look at the state p4_scheduler.build there."
            )
        time.sleep(_PAUSE_S)


def deployed(name):
    """Whether an artefact is unpacked on this host.

    name: str, version and build id
    Returns bool.

    CLI Example:

    .. code-block:: bash

        salt '*' slurm_build.deployed 24.11.5-0123456789ab
    """
    return os.path.exists(f"{build.ROOT}/{name}/{MANIFEST}")


def deploy(offer):
    """Download an artefact, check it, unpack it beside the others.

    offer: dict, of ``offered``
    Raises CommandExecutionError; then nothing new stands under /opt/slurm.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_build.deploy "$(salt-call --out=json slurm_build.offered)"
    """
    target = f"{build.ROOT}/{offer['name']}"
    aside = f"{build.ROOT}/.new-{offer['name']}"
    archive = f"{aside}/archive"
    try:
        os.makedirs(build.ROOT, mode=0o755, exist_ok=True)
        for left in glob.glob(f"{build.ROOT}/.new-*"):
            shutil.rmtree(left)
        os.mkdir(aside, 0o700)
        _download(offer["url"], archive, f"artefact {offer['name']}")
        found = salt.utils.hashutils.get_hash(archive, "sha256")
        if found != offer["sha256"]:
            raise CommandExecutionError(
                f"{offer['url']}: found sha256 {found}; expected {offer['sha256']}, as the "
                "builder says. Not unpacked."
            )
        with tarfile.open(archive) as tar:
            _extract(tar, aside)
        tree = f"{aside}/{offer['name']}"
        _write_json(
            f"{tree}/{MANIFEST}", {key: value for key, value in offer.items() if key != "url"}
        )
        if os.path.exists(target):
            shutil.rmtree(target)  # without a manifest: a cut removal
        os.rename(tree, target)
    except (OSError, tarfile.TarError) as error:
        raise CommandExecutionError(f"Unpacking {offer['name']}: {error}.") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _extract(tar, folder):
    """Everything as root's own, refusing what would leave the folder."""
    if hasattr(tarfile, "data_filter"):
        tar.extractall(folder, filter="data")
        return
    # Debian 12's own Python (3.11.2) has no filters; gone with it.
    root = os.path.realpath(folder)
    for member in tar.getmembers():
        path = os.path.join(root, member.name)
        ends = [path]
        if member.issym():
            ends.append(os.path.join(os.path.dirname(path), member.linkname))
        elif member.islnk():
            ends.append(os.path.join(root, member.linkname))
        elif not (member.isfile() or member.isdir()):
            raise tarfile.ExtractError(f"{member.name} is neither file, folder nor link")
        if any(os.path.commonpath([root, os.path.realpath(end)]) != root for end in ends):
            raise tarfile.ExtractError(f"{member.name} would leave {folder}")
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mode &= 0o755
        tar.extract(member, root)


def active():
    """The name of the artefact that /opt/slurm/current points at.

    Returns str, empty when there is none.

    CLI Example:

    .. code-block:: bash

        salt '*' slurm_build.active
    """
    return os.path.basename(os.readlink(build.LINK)) if os.path.islink(build.LINK) else ""


def activate(name):
    """Point /opt/slurm/current at an artefact, in one step.

    name: str, version and build id
    Raises CommandExecutionError when it is not deployed.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_build.activate 24.11.5-0123456789ab
    """
    if not deployed(name):
        raise CommandExecutionError(f"{build.ROOT}/{name} is not deployed on this host.")
    aside = f"{build.LINK}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(aside)
    os.symlink(name, aside)
    os.replace(aside, build.LINK)


def surplus():
    """The deployed artefacts beyond those that the plan keeps; never one that is active or still
    runs.

    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt '*' slurm_build.surplus
    """
    trees = {
        os.path.basename(os.path.dirname(p)): os.path.getmtime(p)
        for p in glob.glob(f"{build.ROOT}/*/{MANIFEST}")
    }
    trees.pop("current", None)
    return build.surplus(list(trees), trees, {active(), *_running()}, _section()["keep"])


def remove(name):
    """Remove a deployed artefact that ``surplus`` names.

    name: str, version and build id
    Raises CommandExecutionError for any other.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_build.remove 24.11.5-0123456789ab
    """
    if name not in surplus():
        raise CommandExecutionError(
            f"{name} stays: it is active, still runs, or is within build:keep."
        )
    os.unlink(
        f"{build.ROOT}/{name}/{MANIFEST}"
    )  # first: a cut removal looks unfinished, not deployed
    shutil.rmtree(f"{build.ROOT}/{name}")


def _running():
    """The artefacts whose programs run now."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/exe"):
        with contextlib.suppress(OSError):
            target = os.readlink(path)
            if target.startswith(f"{build.ROOT}/"):
                found.add(target.split("/")[3])
    return found


# --- small things
# --------------------------------------------------------------------------------------------


def _section():
    return __salt__["saltern.view"]("build")


def _feature_packages(wanted):
    return build_features.packages(wanted, __grains__["os_family"])


def _system():
    return {key: str(__grains__[key]) for key in ("os", "osrelease", "osarch")}


def _package_versions(wanted):
    """The version of each package that a build would use: the one installed, else the one that
    would be."""
    __salt__["pkg.refresh_db"]() if not _lists_known() else None
    names = sorted(
        {*__salt__["saltern.platform"]()["slurm_build"], *_feature_packages(wanted["features"])}
    )
    have = __salt__["pkg.list_pkgs"]()
    unknown = [name for name in names if name not in have]
    coming = __salt__["pkg.latest_version"](*unknown, refresh=False) if unknown else {}
    if isinstance(coming, str):
        coming = {unknown[0]: coming}
    return {name: have.get(name) or coming.get(name) or "none" for name in names}


def _lists_known():
    return __grains__["os_family"] != "Debian" or bool(glob.glob("/var/lib/apt/lists/*_Packages*"))


def _manifest_path(name):
    return os.path.join(STORE, f"slurm-{name}.manifest.json")


def _manifests():
    return [_read_json(path) for path in glob.glob(os.path.join(STORE, "slurm-*.manifest.json"))]


def _files(tree):
    return sorted(
        os.path.relpath(os.path.join(folder, file), tree)
        for folder, _, files in os.walk(tree)
        for file in files
        if file != MANIFEST
    )


def _is_object(file):
    return file.startswith(("bin/", "sbin/")) or ".so" in os.path.basename(file)


def _libraries(tree, files):
    objects = [f"{tree}/{file}" for file in files if _is_object(file)]
    result = __salt__["cmd.run_all"](
        ["ldd", *objects],
        python_shell=False,
        ignore_retcode=True,
        output_loglevel="quiet",
        timeout=120,
    )
    return result["stdout"]


def _read(path):
    with salt.utils.files.fopen(path, errors="replace") as file:
        return file.read()


def _read_json(path):
    with salt.utils.files.fopen(path) as file:
        return json.load(file)


def _write_json(path, data):
    with salt.utils.files.fopen(f"{path}.new", "w") as file:
        json.dump(data, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


__func_alias__ = {"build_artefact": "build"}
